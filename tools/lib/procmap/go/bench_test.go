// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause

package procmap

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// region is what profilers keep of a line.
type region struct {
	start, end, offset, inode uint64
	permissions, name         string
}

// bySscanf is how a line is usually parsed.
func bySscanf(line string) (r region) {
	var device string
	fmt.Sscanf(line, "%x-%x %s %x %s %d %s", &r.start, &r.end, &r.permissions, &r.offset,
		&device, &r.inode, &r.name)
	return r
}

// byHand is how it is parsed where that takes too long.
func byHand(line string) (r region) {
	fields := strings.Fields(line)
	start, end, _ := strings.Cut(fields[0], "-")
	r.permissions = fields[1]
	if len(fields) > 5 {
		r.name = fields[5]
	}
	r.start, _ = strconv.ParseUint(start, 16, 64)
	r.end, _ = strconv.ParseUint(end, 16, 64)
	r.offset, _ = strconv.ParseUint(fields[2], 16, 64)
	r.inode, _ = strconv.ParseUint(fields[4], 10, 64)
	return r
}

func parseText(pid int, list []region, parse func(string) region) []region {
	file := must(os.Open(fmt.Sprintf("/proc/%d/maps", pid)))
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		list = append(list, parse(lines.Text()))
	}
	return list
}

// Of a process with so many mappings, list every tenth one, which is executable, and look
// up an address in the middle of them. For either, a parser reads the whole text.
func Benchmark(b *testing.B) {
	for _, mappings := range []int{100, 3000, 60000} {
		pid, _ := start(b, fmt.Sprintf("map %d %s", mappings, b.TempDir()), os.Args[0])
		run := func(name string, call func()) {
			b.Run(fmt.Sprintf("%s/%d", name, mappings), func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; i < b.N; i++ {
					call()
				}
			})
		}
		regions := parseText(pid, nil, byHand)
		addr := regions[len(regions)/2].start
		run("Parse/Sscanf", func() { regions = parseText(pid, regions[:0], bySscanf) })
		run("Parse/Fields", func() { regions = parseText(pid, regions[:0], byHand) })
		for method, p := range must(openAll(b, pid)) {
			var list []Mapping
			run("List/"+string(method), func() {
				list = must(p.List(background, list[:0], Executable))
			})
			run("Find/"+string(method), func() { must(p.Find(addr, 0)) })
		}
	}
}
