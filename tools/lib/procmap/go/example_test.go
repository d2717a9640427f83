// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause

package procmap

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"
)

// A profiler lists what may be in its samples, and opens what it has to read.
func Example() {
	p, err := Open(os.Getpid(), Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	list, err := p.List(ctx, nil, Executable|WantBuildID)
	if err != nil {
		log.Fatal(err)
	}
	if file, err := p.OpenFile(&list[0]); err == nil {
		defer file.Close() // its symbols are those of the process
	}
	fmt.Println(filepath.Ext(list[0].Name))
	// Output: .test
}
