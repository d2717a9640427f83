// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause

package procmap_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"reflect"
	"strings"
	"time"

	"procmap"
)

// A profiler lists what may be in its samples, and opens what it has to read.
func Example() {
	p, err := procmap.Open(os.Getpid(), procmap.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	list, err := p.List(ctx, nil, procmap.Executable|procmap.WantBuildID)
	if err != nil {
		log.Fatal(err)
	}
	addr := uint64(reflect.ValueOf(Example).Pointer())
	for i, m := range list {
		if m.Start <= addr && addr < m.End {
			if file, err := p.OpenFile(&list[i]); err == nil {
				defer file.Close() // its symbols are those of the process
			}
			fmt.Println(strings.HasSuffix(m.Name, ".test"))
		}
	}
	// Output: true
}
