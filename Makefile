# SPDX-License-Identifier: GPL-2.0
#
# "make help" tells what there is to make. The options are those of Kconfig,
# from "make menuconfig" or from the command line.

-include .config

unquote = $(patsubst "%",%,$(1))

BASE		?= $(or $(call unquote,$(CONFIG_BASE)),linux-6.1)
KDIR		?= $(call unquote,$(CONFIG_KDIR))
CPUS		?= $(or $(CONFIG_CPUS),2)
MEMORY		?= $(or $(call unquote,$(CONFIG_MEMORY)),2G)

# Without a .config, all of the debug kernel's aids are on.
aids		:= KASAN PROVE_LOCKING DEBUG_KMEMLEAK FAULT_INJECTION
aid-default	:= $(if $(wildcard .config),n,y)
$(foreach aid,$(aids),$(eval $(aid) ?= $(or $(CONFIG_$(aid)),$(aid-default))))
DEBUG_OFF	:= $(foreach aid,$(aids),$(if $(filter n,$($(aid))),$(aid)))

# The kernel that the live module is for.
KVER		?= $(shell uname -r)

export BASE KDIR CPUS MEMORY DEBUG_OFF

.PHONY: help setup setup-run setup-live setup-deb run run-tree live deb check check-bpf bench bench-contention series shell menuconfig clean

help:
	@echo 'make run         set up, boot a stock Debian kernel, load the live module, and'
	@echo '                 resolve the addresses of a real process in it by ioctl and by text'
	@echo 'make run-tree    the same on the patched kernel, which it builds'
	@echo 'make live        build the live module for the kernel KVER'
	@echo 'make deb         build the Debian packages of it, of the library and of the tool'
	@echo 'make check       set up, and run every test and static check'
	@echo 'make check-bpf   run all of test_progs with and without the series, and compare'
	@echo 'make bench       count what queries cost, here, on mainline and by the text'
	@echo 'make bench-contention  how long queries keep others from mapping'
	@echo 'make series      write the patches to build/series/$(BASE)'
	@echo 'make shell       a shell in the guest, on the patched kernel'
	@echo 'make setup       install what all of the above need'
	@echo 'make menuconfig  set the options that Kconfig describes'
	@echo 'make clean       remove all that was built'
	@echo
	@echo 'Options, here or in menuconfig: BASE=$(BASE) KDIR=$(KDIR) CPUS=$(CPUS) MEMORY=$(MEMORY)'
	@echo 'KVER=$(KVER)'
	@echo '$(foreach aid,$(aids),$(aid)=$($(aid)))'

setup:
	@scripts/setup

setup-run setup-live setup-deb:
	@scripts/setup $(@:setup-%=%)

run: setup-run
	@scripts/run

run-tree: setup
	@scripts/run tree

live: setup-live
	@scripts/live $(KVER)

deb: setup-deb
	@scripts/deb

check: setup
	@scripts/check

check-bpf: setup
	@scripts/bpf compare

bench: setup
	@bench/bench

bench-contention: setup
	@bench/bench contention

series: setup
	@scripts/series

shell: setup
	@scripts/vm

menuconfig: setup
	@KCONFIG_CONFIG=.config kconfig-mconf Kconfig

clean:
	rm -rf build
