# SPDX-License-Identifier: GPL-2.0
#
# "make help" lists the targets and the options, which come from the command line.

SHELL		:= /bin/bash
override BASE	:= $(or $(BASE),$(shell KDIR='$(KDIR)'; . scripts/common.sh && echo $$BASE))
CPUS		?= 2
MEMORY		?= 2G

# The release that "make live" builds the module for.
KVER		?= $(shell uname -r)

export BASE KDIR CPUS MEMORY

ifeq ($(wildcard series/$(BASE)/base),)
$(error there is no base '$(BASE)' in series/; set BASE= to one of: \
	$(patsubst series/%/base,%,$(wildcard series/linux-*/base)))
endif

.PHONY: help setup setup-run setup-live setup-deb run live deb test check check-commit check-all soak bench bench-contention uprobes series refresh shell clean

help:
	@echo 'make run         boot a stock Debian kernel, load the live module, and resolve the'
	@echo '                 addresses of a process in it, with the ioctl and from the text'
	@echo 'make live        build the live module for the kernel release KVER'
	@echo 'make deb         build the Debian packages of the module, the library and the tool'
	@echo 'make test T=…    run one test program, such as proc/procmap-query-abi, where it belongs;'
	@echo '                 KERNEL=debug: with the debug aids of the kernel'
	@echo 'make check       run the tests on kernels of Debian, and static checks'
	@echo 'make check-commit  the same, and those on kernels that are built here'
	@echo 'make check-all   run all of them, with those that take long'
	@echo 'make soak        call the ioctls at random, 1,000,000 times each'
	@echo 'make bench       count the instructions of the ioctls, of mainline and of the text'
	@echo 'make bench-contention  measure how long readers delay a process that maps'
	@echo 'make uprobes     run the tests of uprobes/'
	@echo 'make series      write the patches to build/series/'
	@echo 'make refresh     write changes made in the tree of PROCMAP_QUERY back to series/'
	@echo 'make shell       open a shell in a guest with the patched kernel'
	@echo 'make setup       install the packages that the other targets need (they do it too)'
	@echo 'make clean       remove build/'
	@echo
	@echo 'Options: BASE=$(BASE) KDIR=$(KDIR) CPUS=$(CPUS) MEMORY=$(MEMORY)'
	@echo 'KVER=$(KVER)'

setup:
	@scripts/setup

setup-run setup-live setup-deb:
	@scripts/setup $(@:setup-%=%)

# On another architecture: make run ARCH=arm64
run: $(if $(filter arm64,$(ARCH)),setup,setup-run)
	@scripts/demo $(filter arm64,$(ARCH))

live: setup-live
	@scripts/live $(KVER)

deb: setup-deb
	@scripts/deb

test: setup
	@checks/test $(T)

check: setup
	@checks/run

check-commit: setup
	@checks/run --commit

check-all: setup
	@checks/run --all

soak: export KERNEL = debug
soak: setup
	@for soak in fuzz:1000000 build-id-corpus:25000 change-at-random:5000; do \
		PROCMAP_SOAK_CALLS=$${soak#*:} checks/test stress/$${soak%:*} || exit; \
	done

bench: setup
	@bench/bench

bench-contention: setup
	@bench/bench contention

uprobes: setup
	@checks/run uprobes-live uprobes

series: setup
	@scripts/series

refresh: setup
	@scripts/series refresh

shell: setup
	@scripts/vm

clean:
	rm -rf build
