// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * Print where the program is: file and ELF address of each frame. If addr2line is
 * installed, it also prints their functions and lines.
 *
 *	c++ -std=c++17 -g backtrace.cc $(pkg-config --cflags --libs libprocmap)
 */
#include <cstdint>
#include <cstdio>
#include <string>
#include <system_error>
#include <vector>

#include <execinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include <procmap.hpp>

/* A return address may be that of the next function or line; the call is before it. */
static std::vector<std::uint64_t> calls()
{
	void *frames[64];
	const int nr = backtrace(frames, 64);
	std::vector<std::uint64_t> addrs;

	for (int i = 0; i < nr; i++)
		addrs.push_back(reinterpret_cast<std::uintptr_t>(frames[i]) - 1);
	return addrs;
}

static void print_symbol(const char *file, const std::string &address)
{
	const pid_t child = fork();

	if (!child) {
		execlp("addr2line", "addr2line", "-Cfpe", file, address.c_str(),
		       nullptr);
		_exit(127);
	}
	waitpid(child, nullptr, 0);
}

static void print_backtrace()
{
	auto own = libprocmap::handle::open_self();
	const auto addrs = calls();
	const auto resolved = own.resolve(addrs);

	for (std::size_t i = 0; i < resolved->nr_addrs; i++) {
		char address[32];

		if (!resolved->mappings[i])
			continue;
		const auto &mapping = *resolved->mappings[i];
		libprocmap::file file(own, mapping);

		std::snprintf(address, sizeof(address), "%#llx",
			      static_cast<unsigned long long>(
				file.address(mapping, addrs[i])));
		std::printf("%s %s\n", mapping.name, address);
		std::fflush(stdout);
		print_symbol(mapping.name, address);
	}
}

int main()
{
	try {
		print_backtrace();
	} catch (const std::system_error &error) {
		std::fprintf(stderr, "%s\n", error.what());
		return 1;
	}
	return 0;
}
