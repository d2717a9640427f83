// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause

//go:build linux && (386 || amd64 || arm64)

package procmap_test

import (
	"context"
	"debug/elf"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"procmap"
)

func here() {}

// A profiler lists what may be in its samples, and looks up what is not there.
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

	addr := uint64(reflect.ValueOf(here).Pointer())
	for _, m := range list {
		if m.Start <= addr && addr < m.End {
			fmt.Println("listed as", m.Flags&procmap.Executable != 0)
		}
	}
	m, err := p.Find(addr, 0)
	if err != nil {
		log.Fatal(err)
	}
	file, err := p.OpenFile(&m)
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	if _, err := elf.NewFile(file); err == nil {
		fmt.Println(filepath.Ext(m.Name), "is an ELF file")
	}
	// Output:
	// listed as true
	// .test is an ELF file
}
