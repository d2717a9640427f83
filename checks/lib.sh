#!/bin/bash
# lib: the library and the tool, on the host, and the manuals.
# shellcheck source=checks/shared/guests.sh
. "$(dirname "$0")/shared/guests.sh"

lib=$ROOT/tools/lib/procmap

lib_is_warning_free() {
	local cc bits
	for cc in gcc clang; do
		for bits in 64 32; do
			make -C "$lib" OUTPUT="$tmp/lib-$cc-$bits" \
				CC="$cc -m$bits" CFLAGS="-O2 -Werror"
		done
	done
}

# As README says.
musl_builds_it() {
	make -C "$lib" OUTPUT="$tmp/musl" CC=musl-gcc CFLAGS="-O2 -Werror"
	musl-gcc -static -Werror -I "$lib" -o "$tmp/musl/whomaps" \
		"$lib/examples/whomaps.c" "$tmp/musl/libprocmap.a"
	"$tmp/musl/whomaps" /proc/$$/exe | grep "^$$ .* r-xp /"
}

declared_functions() {
	sed -nE 's/^([a-z][a-z_ ]*[ *])?(procmap_[a-z_]+)\(.*/\2/p' "$lib"/procmap{,_table}.h |
		sort
}

exported_functions() {
	sed -nE 's/^\t\t(procmap_[a-z_]*);$/\1/p' "$lib/libprocmap.map" | sort
}

# Any program may include the header: before all others, and with all warnings.
header_is_portable() {
	local cc std
	for cc in gcc clang; do
		for std in c99 c11 c17 c++11 c++20; do
			$cc -x "${std//[0-9]/}" -std="$std" -pedantic -Wall -Wextra -Wconversion \
				-Werror -fsyntax-only -I "$lib" - \
				<<<$'#include <procmap_self.h>\n#include <procmap_table.h>'
		done
	done
}

# The header of a runtime needs nothing else, and has no data. It takes most stack for the text,
# for which it calls no query.
self_header_stands_alone() {
	local target level limit object=$tmp/self.o
	for target in "gcc -m64 -mno-red-zone" "gcc -m32 -fPIC" "clang -m64 -mno-red-zone" \
		"clang --target=aarch64-linux-gnu" "clang --target=arm-linux-gnueabi -marm" \
		"clang --target=arm-linux-gnueabihf -mthumb"; do
		for level in -O0 -O2 -Os; do
			limit=512
			[ $level != -O0 ] || limit=768
			$target $level -Wall -Wextra -Werror -ffreestanding -fstack-usage \
				-I "$lib" -x c -c -o "$object" - <<-'END'
				#include <procmap_self.h>
				int find(uintptr_t addr, struct procmap_self_mapping *mapping);
				int find(uintptr_t addr, struct procmap_self_mapping *mapping)
				{
					return procmap_self(addr, mapping);
				}
			END
			nm -u "$object" | (! grep -v _GLOBAL_OFFSET_TABLE_)
			nm "$object" | (! grep -i ' [bcd] ')
			awk -v limit=$limit '!/procmap_self_by_query/ { sum += $(NF - 1) }
				END { print sum; exit !sum || sum > limit }' "${object%.o}.su"
		done
	done
	! gcc -D__riscv -U__x86_64__ -fsyntax-only "$lib/procmap_self.h" 2>"$tmp/error" || false
	grep 'Add here' "$tmp/error"
	musl-gcc -static -Wall -Wextra -Werror -ffreestanding -nostdlib -I "$lib" \
		-o "$tmp/self" "$lib/test/self-without-libc.c"
	"$tmp/self"
}

# A program that was built with this header runs with a library whose structures have a
# field more: the tests, C++ and Python.
lib_may_grow() {
	local grown=$tmp/grown test
	mkdir -p "$grown/tools/lib"
	cp -r "$lib" "$grown/tools/lib/procmap"
	ln -s "$ROOT/include" "$grown/include"
	sed -i '/^struct [a-z_]* {$/,/^};$/s/^};$/\tuint64_t added;\n};/' \
		"$grown"/tools/lib/procmap/procmap{,_table}.h
	make -C "$grown/tools/lib/procmap" OUTPUT="$grown"
	make -C "$lib" OUTPUT="$grown/test" TESTED="$grown/libprocmap.a" \
		SELFTESTS="$patched/tools/testing/selftests" tests
	for test in "$grown"/test/procmap-*-test; do
		"$test"
	done
	g++ -std=c++17 -I "$lib" -o "$grown/handle" "$lib/test/handle.cc" \
		-L "$grown" -lprocmap
	export LD_LIBRARY_PATH=$grown PYTHONDONTWRITEBYTECODE=1
	"$grown/handle"
	python3 -W error "$lib/test/test_procmap.py"
}

# The functions in the header are those of the version map, and all that the library
# exports: the shared one, and the static one of each compiler, which leaves all other
# names to the program.
lib_exports_what_it_declares() {
	local archive
	declared_functions >"$tmp/declared"
	exported_functions | diff "$tmp/declared" -
	nm -D --defined-only "$programs/lib64/libprocmap.so" |
		sed -nE 's/.* T (.*)@@LIBPROCMAP_1.0$/\1/p' | sort |
		diff "$tmp/declared" -
	readelf -d "$programs/lib64/libprocmap.so" |
		grep 'SONAME.*\[libprocmap.so.1\]'
	for archive in "$tmp"/lib-{gcc,clang}-{64,32}/libprocmap.a; do
		nm -g --defined-only "$archive" | sed -nE 's/^[0-9a-f]+ . //p' | sort |
			diff "$tmp/declared" -
		# Nor has it any state that threads could share.
		size -A "$archive" | awk '
			$1 == ".text" { code += $2 }
			$1 ~ /^\.t?(data|bss)/ && $1 !~ /^\.data\.rel\.ro/ {
				variables += $2
			}
			END { exit !code || variables }'
	done
}

# Each function is in a binding, or has one line in checks/bindings that says why not.
bindings_have_what_it_exports() {
	local binding functions reason
	exported_functions >"$tmp/exported"
	grep -oE '"procmap_[a-z_]+"' "$lib"/python/procmap/*.py | tr -d '"' | sort -u >"$tmp/python"
	grep -vE '^\s*/?\*' "$lib/procmap.hpp" | grep -oE '\bprocmap_[a-z_]+\(' | tr -d '(' |
		sort -u >"$tmp/c++"
	grep -v '^#' "$ROOT/checks/bindings" | while IFS=$'\t' read -r binding functions reason; do
		[ "$reason" ]
		grep -xE "$functions" "$tmp/exported" >>"$tmp/$binding"
		[[ $reason != =* ]] || grep -E "^func (\(.*\) )?${reason#= }\(" -h "$lib"/go/*.go
	done
	for binding in python c++ go; do
		sort "$tmp/$binding" | diff "$tmp/exported" -
	done
}

# The program in a page's EXAMPLES.
examples_of() {
	local page=${1##*/}
	awk -v to="$2/${page%.*}" '
		/^\.Sh / { examples = $2 == "EXAMPLES" }
		/^\.Ed/ { writing = 0 }
		writing { gsub(/\\e/, "\\"); print >(to ".c") }
		examples && /^\.Bd -literal$/ { writing = 1 }' "$1"
}

# The declarations in a page's SYNOPSIS.
synopsis_of() {
	mandoc -T ascii "$1" |
		sed -n 's/.\x08//g; /^SYNOPSIS/,/^DESCRIPTION/{/^[A-Z]/!p}'
}

# The library as it is installed: with pkg-config, its manual and its examples. It was
# built before, for another prefix.
lib_is_installed_and_used() {
	local root=$tmp/install function page example flags
	rm -rf "$root"
	make -C "$lib" OUTPUT="$tmp/lib-install"
	make -C "$lib" OUTPUT="$tmp/lib-install" prefix="$root/usr" install
	export PKG_CONFIG_PATH=$root/usr/lib/pkgconfig LD_LIBRARY_PATH=$root/usr/lib
	read -ra flags < <(pkg-config --cflags --libs libprocmap)
	for function in $(declared_functions) procmap_self; do
		page=$(man -M "$root/usr/share/man" -w 3 "$function")
		grep -E "^\.F[no] $function( |\$)" "$page"
	done
	find "$root/usr/share/man" -type l | (! grep -v '/man3/procmap_[a-z_]*\.3$')
	find "$root/usr/share/man" -type f | while read -r page; do
		examples_of "$page" "$tmp/install"
		[ -e "$tmp/install/$(basename "${page%.*}").c" ]
	done
	for page in "$lib"/man/*.3; do
		synopsis_of "$page" >"$tmp/synopsis.c"
		grep '#include <procmap' "$tmp/synopsis.c"
		gcc -Wall -Wextra -Werror -fsyntax-only "$tmp/synopsis.c" "${flags[@]}"
	done
	for example in "$tmp"/install/*.c; do
		gcc -Wall -Wextra -Werror -o "${example%.c}" "$example" "${flags[@]}"
	done
	g++ -std=c++17 -Wall -Wextra -pedantic -Werror -o "$tmp/install/handle" \
		"$lib/test/handle.cc" "${flags[@]}"
	"$tmp/install/handle"
	PYTHONPATH=$root/usr/lib/python3/dist-packages python3 -c 'import procmap'
	make -C "$lib" PYTHON=/usr/bin/python3 prefix=/usr/local help |
		grep -x 'pythondir=/usr/local/lib/python3.*/dist-packages'
	"$tmp/install/procmap_find" | grep "^$tmp/install/procmap_find+0x"
	"$tmp/install/procmap_open_file" |
		grep -E "^addr2line -f -e '$tmp/install/procmap_open_file' 0x[0-9a-f]+$"
}

# The module, with the interpreter that is installed.
python_module_works() {
	export LD_LIBRARY_PATH=$programs/lib64 PYTHONDONTWRITEBYTECODE=1
	python3 -W error "$lib/test/test_procmap.py"
	PYTHONPATH=$lib/python "$lib/examples/backtrace.py" >"$tmp/backtrace"
	cat "$tmp/backtrace"
	grep -E '/libc\.so\.6 0x[0-9a-f]+' "$tmp/backtrace"
}

uninstall_leaves_nothing() {
	local root=$tmp/uninstall/root tools
	for tools in "$lib" "$ROOT/tools/procmap"; do
		make -C "$tools" OUTPUT="$tmp/uninstall" DESTDIR="$root" install
		find "$root" ! -type d | grep .
		make -C "$tools" OUTPUT="$tmp/uninstall" DESTDIR="$root" uninstall
		find "$root" ! -type d | diff /dev/null -
	done
}

# By pip, which writes to the directory that it is given; or by make, which says if the Python
# that it is given does not look there. A program with types that uses it passes mypy.
python_module_is_installed() {
	local python
	cat >"$tmp/typed.py" <<-END
		import os
		from procmap import Flag, Location, Procmap, __version__

		def locate(pid: int) -> list[Location]:
		    with Procmap(pid, proc="/proc") as maps, maps.snapshot(Flag.EXECUTABLE) as code:
		        starts: list[int] = [mapping.start for mapping in code[:3]]
		        return maps.resolve(starts)

		for location in locate(os.getpid()):
		    print(location.mapping.name if location.mapping else "-", __version__)
	END
	cp -r "$lib/python" "$tmp/source"
	cd "$tmp"
	for python in pip make; do
		/usr/bin/python3 -m venv --system-site-packages "$tmp/$python"
	done
	pip/bin/pip install --no-build-isolation --no-index ./source
	make -C "$lib" PYTHON="$tmp/make/bin/python3" prefix="$tmp/make" install-python >said
	expect 1 grep 'does not look' said
	make -C "$lib" PYTHON="$tmp/pip/bin/python3" prefix="$tmp/other" install-python |
		grep "^$tmp/pip/bin/python3 does not look for modules in $tmp/other/lib/"
	for python in {pip,make}/bin/python3; do
		LD_LIBRARY_PATH=$programs/lib64 "$python" typed.py
		mypy --strict --cache-dir=/dev/null --python-executable "$python" typed.py
	done
}

# The examples find a process by its program, which is a copy, and print what it maps.
# shellcheck disable=SC2046,SC2154	# one word a job and an ID; set by coproc
examples_work() {
	local examples=$programs/examples pid build_id
	cp /usr/bin/python3 "$tmp/scene"
	coproc "$tmp/scene" -c 'print(flush=True); input()'
	trap 'kill $(jobs -p) 2>/dev/null || :' EXIT
	pid=$COPROC_PID
	build_id=$(readelf -n "$tmp/scene" | sed -n 's/.*Build ID: //p')
	read -r _ <&"${COPROC[0]}"
	"$examples/whomaps" "$tmp/scene" | grep "^$pid " | tee "$tmp/mappers"
	sed -E 's/^0+//; s/-0+/-/' "/proc/$pid/maps" |
		awk -v "pid=$pid" -v "name=$tmp/scene" '$6 == name { print pid, $1, $2, $6 }' |
		diff "$tmp/mappers" -
	rustc --edition 2021 -D warnings -L "$programs/lib64" -l static=procmap \
		-o "$tmp/list" "$lib/examples/list.rs"
	"$tmp/list" "$pid" | grep -E " $build_id $tmp/scene$"
}

# A load spins in Python, then in code that only a perf map names; a map that is a link is not
# read. A child has what its parent had compiled before it was forked. The status is
# that of the load.
profile_works() {
	local load
	load=$(cat <<-'END'
		import ctypes, mmap, os, sys, time
		code = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE, 7)
		code.write(b"\xb9\0\0\0\x20\xff\xc9\x75\xfc\xc3")
		address = ctypes.addressof(ctypes.c_char.from_buffer(code))
		path = f"/tmp/perf-{os.getpid()}.map"
		if len(sys.argv) > 1: os.symlink(sys.argv[1], path)
		with open(path, "w") as perf_map: print(f"{address:x} a jitted", file=perf_map)
		sum(range(1 << 25))
		jitted = ctypes.CFUNCTYPE(None)(address)
		jitted()
		reader, writer = os.pipe()
		if not os.fork():
		    with open("/proc/self/comm", "w") as comm: comm.write("forked")
		    os.read(reader, 1)
		    jitted()
		    os._exit(0)
		time.sleep(0.5)
		with open(path, "a") as perf_map: print(f"{address:x} a later", file=perf_map)
		jitted()
		os.write(writer, b"x")
		os.wait()
		os.unlink(path)
		sys.exit(7)
	END
	)
	expect 7 "$programs/examples/profile" python3 -c "$load" >"$tmp/stacks"
	sort "$tmp/stacks" | uniq -c
	[ "$(grep -c '^python3;.*;Py_RunMain;.*;_PyEval_EvalFrameDefault;' "$tmp/stacks")" -gt 20 ]
	[ "$(grep -c '^python3;.*jitted 1$' "$tmp/stacks")" -gt 20 ]
	[ "$(grep -c '^forked;.*jitted 1$' "$tmp/stacks")" -gt 20 ]
	expect 1 grep '^forked;.*later 1$' "$tmp/stacks"
	expect 7 "$programs/examples/profile" python3 -c "$load" "$tmp/link" >"$tmp/stacks"
	[ "$(grep -c '^python3;.*\[unknown\] 1$' "$tmp/stacks")" -gt 20 ]
	expect 1 grep jitted "$tmp/stacks"
	expect 2 "$programs/examples/profile" -n
}

# The example of procmap(7), as the body of a function.
cplusplus_example() {
	printf '#include <%s>\n' string_view procmap.hpp
	echo 'void add(uint64_t, uint64_t, uint64_t, std::string_view); void list(int pid) {'
	sed '1,/^C++, with$/d; /^\.Ed$/,$d; /^[.w]/d' "$lib/man/procmap.7"
	echo '}'
}

# The header of C++, in both compilers.
cplusplus_header_works() {
	local compiler
	cplusplus_example >"$tmp/example.cc"
	grep 'libprocmap::handle' "$tmp/example.cc"
	local -a flags=(-std=c++17 -g -Wall -Wextra -pedantic -Wshadow -Werror -I "$lib")
	for compiler in g++ clang++; do
		"$compiler" "${flags[@]}" -Wsign-conversion -fsyntax-only -x c++ \
			- <<<'#include <procmap.hpp>'
		"$compiler" "${flags[@]}" -fsyntax-only "$tmp/example.cc"
		"$compiler" "${flags[@]}" -fsanitize=address,undefined \
			-fno-sanitize-recover=all -o "$tmp/handle" "$lib/test/handle.cc" \
			"$programs/lib64/libprocmap.a"
		"$tmp/handle"
		"$compiler" "${flags[@]}" -o "$tmp/backtrace" \
			"$lib/examples/backtrace.cc" "$programs/lib64/libprocmap.a"
		"$tmp/backtrace" | tee "$tmp/frames"
		grep "^main at $lib/examples/backtrace.cc:[0-9]" "$tmp/frames"
	done
}

# 2const is a section of the man-pages project, which mandoc does not know.
manual_is_well_formed() {
	local reports
	# Status 2: warnings.
	mandoc -Tlint -Wwarning "$lib"/man/* "$ROOT"/tools/procmap/*.1 >"$tmp/lint" ||
		[ $? -le 2 ]
	reports=$(grep -v 'unknown manual section: Dt ... 2const' "$tmp/lint") || :
	printf '%s\n' "$reports"
	[ -z "$reports" ]
}

check "no warning in gcc and clang, 64 and 32 bits" lib_is_warning_free
check "musl builds it" musl_builds_it
check "it exports what it declares" lib_exports_what_it_declares
check "its bindings have it, or say why not" bindings_have_what_it_exports
check "its structures may grow" lib_may_grow
check "its header suits C99 and C++, gcc and clang" header_is_portable
check "the header of a runtime stands alone" self_header_stands_alone
check "installed, with the examples of its manual" lib_is_installed_and_used
check "what is installed can be uninstalled" uninstall_leaves_nothing
check "the Python module" python_module_works
check "the Python module, installed, and its types" python_module_is_installed
check "the C++ header" cplusplus_header_works
check "the examples" examples_work
# In a container, perf_event_open(2) may be forbidden.
if "$programs/examples/profile" true 2>&1 | grep -q perf_event_open; then
	skip "$section" "the example profile" 'this machine permits no events'
else
	check "the example profile" profile_works
fi
check "the manuals are well-formed" manual_is_well_formed
guests
done_testing
