// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause

package procmap_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"reflect"
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
	for i := range list {
		m := &list[i]
		if m.Start <= addr && addr < m.End {
			file, err := p.OpenFile(m)
			if err == nil {
				file.Close()
			} else if !errors.Is(err, os.ErrPermission) {
				log.Fatal(err)
			}
			fmt.Println(filepath.Ext(m.Name))
		}
	}
	// Output: .test
}
