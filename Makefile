# SPDX-License-Identifier: GPL-2.0
#
# "make help" lists the targets. The options are those of Kconfig; they come from
# "make menuconfig" or from the command line.

-include .config

unquote = $(patsubst "%",%,$(1))

override BASE	:= $(or $(BASE),$(call unquote,$(CONFIG_BASE)),$(shell cat series/default))
KDIR		?= $(call unquote,$(CONFIG_KDIR))
CPUS		?= $(or $(CONFIG_CPUS),2)
MEMORY		?= $(or $(call unquote,$(CONFIG_MEMORY)),2G)

# Without a .config, all debug aids of the kernels are on.
aids		:= KASAN PROVE_LOCKING DEBUG_KMEMLEAK FAULT_INJECTION
aid-default	:= $(if $(wildcard .config),n,y)
$(foreach aid,$(aids),$(eval $(aid) ?= $(or $(CONFIG_$(aid)),$(aid-default))))
DEBUG_OFF	:= $(foreach aid,$(aids),$(if $(filter n,$($(aid))),$(aid)))

# The release that "make live" builds the module for.
KVER		?= $(shell uname -r)

export BASE KDIR CPUS MEMORY DEBUG_OFF

ifeq ($(wildcard series/$(BASE)/base),)
$(error there is no base '$(BASE)' in series/; set BASE= here or in .config to one of: \
	$(patsubst series/%/base,%,$(wildcard series/linux-*/base)))
endif

.PHONY: help setup setup-run setup-live setup-deb run live deb test check check-all soak bench bench-contention uprobes series refresh shell menuconfig clean

help:
	@echo 'make run         boot a stock Debian kernel, load the live module, and resolve the'
	@echo '                 addresses of a process in it, with the ioctl and from the text'
	@echo 'make live        build the live module for the kernel release KVER'
	@echo 'make deb         build the Debian packages of the module, the library and the tool'
	@echo 'make test T=…    run one test program, such as proc/procmap-query-abi, where it belongs;'
	@echo '                 KERNEL=debug: with the debug aids of the kernel'
	@echo 'make check       run the tests and static checks'
	@echo 'make check-all   run all of them, with those that take long'
	@echo 'make soak        call the ioctls at random, 1,000,000 times each'
	@echo 'make bench       count the instructions of the ioctls, of mainline and of the text'
	@echo 'make bench-contention  measure how long readers delay a process that maps'
	@echo 'make uprobes     run the tests of uprobes/'
	@echo 'make series      write the patches to build/series/$(BASE)'
	@echo 'make refresh     write changes made in the patched tree back to series/$(BASE)'
	@echo 'make shell       open a shell in a guest with the patched kernel'
	@echo 'make setup       install the packages that the other targets need (they do it too)'
	@echo 'make menuconfig  set the options that Kconfig describes'
	@echo 'make clean       remove build/'
	@echo
	@echo 'Options, here or in menuconfig: BASE=$(BASE) KDIR=$(KDIR) CPUS=$(CPUS) MEMORY=$(MEMORY)'
	@echo 'KVER=$(KVER)'
	@echo '$(foreach aid,$(aids),$(aid)=$($(aid)))'

setup:
	@scripts/setup

setup-run setup-live setup-deb:
	@scripts/setup $(@:setup-%=%)

# On another architecture: make run ARCH=arm64
run: $(if $(filter arm64,$(ARCH)),setup,setup-run)
	@scripts/run $(filter arm64,$(ARCH))

live: setup-live
	@scripts/live $(KVER)

deb: setup-deb
	@scripts/deb

test: setup
	@checks/test $(T)

check: setup
	@checks/run

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
	@$(MAKE) -C $@ check

series: setup
	@scripts/series

refresh: setup
	@scripts/series refresh

shell: setup
	@scripts/vm

menuconfig: setup
	@KCONFIG_CONFIG=.config kconfig-mconf Kconfig

clean:
	rm -rf build
