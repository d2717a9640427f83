// SPDX-License-Identifier: GPL-2.0
/*
 * procmap-top: sample what programs execute, and show the hottest functions.
 *
 * perf_event_open(2) takes the samples, with registers and stack, and reports what is
 * mapped; libprocmap's process table keeps that; libdw unwinds. This program brings them
 * together in the order of time.
 */
#include "procmap_top.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FREQUENCY_MAX		100000
#define ROWS_MAX		1000000

/* The largest record, less the rest of a sample. */
#define STACK_SIZE_MAX		65000

/* Longest time that records wait in the buffers; and while others are unwound. */
#define ROUND_MS		100
#define READ_MS			10

/* The time that the command has to end after SIGTERM. */
#define PATIENCE_MS		1000

enum {
	KEY_STACK_SIZE = 0x100,
	KEY_FOLDED,
	KEY_SAMPLES,
};

static const struct argp_option argp_options[] = {
	{ .doc = "What to sample, without COMMAND:" },
	{ .name = "all", .key = 'a', .doc = "The whole machine" },
	{ .name = "pid", .key = 'p', .arg = "PID",
	  .doc = "A process, and those that it starts" },

	{ .doc = "Sampling:" },
	{ .name = "frequency", .key = 'F', .arg = "HZ",
	  .doc = "Samples per second of CPU time (default: 99)" },
	{ .name = "duration", .key = 'd', .arg = "SECONDS",
	  .doc = "How long (default: until the process ends, or until ^C)" },
	{ .name = "force", .key = 'f',
	  .doc = "Read files of all users, not only your own and those of root" },
	{ .name = "stack-size", .key = KEY_STACK_SIZE, .arg = "BYTES",
	  .doc = "How much of the stack to copy (default: 8192)" },

	{ .doc = "Output:" },
	{ .name = "output", .key = 'o', .arg = "FILE",
	  .doc = "Write to FILE, not between what COMMAND writes" },
	{ .name = "rows", .key = 'n', .arg = "N",
	  .doc = "The number of functions in the table (default: 20)" },
	{ .name = "folded", .key = KEY_FOLDED,
	  .doc = "Print folded stacks, the input of flame graphs, not the table" },
	{ .name = "json", .key = 'j', .doc = "Print functions and stacks as JSON" },
	{ .name = "samples", .key = KEY_SAMPLES,
	  .doc = "Print each sample as a line of JSON, as soon as it is unwound" },

	{ .key = 'h', .doc = "The same as --help", .group = -1 },
	{}
};

static const char argp_args_doc[] = "-a\n-p PID\nCOMMAND [ARG...]";

static const char argp_doc[] =
	"Sample the user space code that programs execute, unwind their stacks, and show the hottest functions, with file, offset in it and build ID.\n"
	"\vExamples:\n"
	"  procmap-top make -j8                 a build\n"
	"  procmap-top -a -d 10                 the whole machine, for ten seconds\n"
	"  procmap-top --folded -o out make     the input of a flame graph\n"
	"\n"
	"Exit status: 0; 2 for bad usage, or if it is not possible to sample.";

static void set_format(struct options *options, int format)
{
	if (options->format != TABLE && (int)options->format != format)
		fail("--folded, --json and --samples exclude each other: use one of them");
	options->format = format;
}

static unsigned long parse_count(const char *option, const char *text, unsigned long max)
{
	unsigned long value;

	if (!parse_number(text, max, &value))
		fail("%s: '%s' is not a number from 1 to %lu", option,
		     quote(text, strlen(text)), max);
	return value;
}

static void set_duration(struct options *options, const char *text)
{
	if (!parse_seconds(text, &options->seconds))
		fail("-d: '%s' is not a duration: give seconds from 0.001 to %d",
		     quote(text, strlen(text)), SECONDS_MAX);
}

static void check_options(const struct options *options)
{
	switch (options->all + !!options->pid + !!options->command) {
	case 0:
		fail("nothing to sample: use -a, -p PID or COMMAND");
	case 1:
		break;
	default:
		fail("-a, -p and COMMAND exclude each other: use one of them");
	}
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *const options = state->input;

	switch (key) {
	case 'a':
		options->all = true;
		break;
	case 'p':
		options->pid = parse_count("-p", arg, INT32_MAX);
		break;
	case 'f':
		options->force = true;
		break;
	case 'F':
		options->frequency = parse_count("-F", arg, FREQUENCY_MAX);
		break;
	case 'd':
		set_duration(options, arg);
		break;
	case 'o':
		options->output = arg;
		break;
	case 'n':
		options->rows = parse_count("-n", arg, ROWS_MAX);
		break;
	case KEY_STACK_SIZE:
		/* The kernel wants words. */
		options->stack_size = (parse_count("--stack-size", arg, STACK_SIZE_MAX) + 7) &
				      -8ul;
		break;
	case KEY_FOLDED:
		set_format(options, FOLDED);
		break;
	case 'j':
		set_format(options, JSON);
		break;
	case KEY_SAMPLES:
		set_format(options, SAMPLES);
		break;
	case 'h':
		argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
		break;
	case ARGP_KEY_ARGS:
		options->command = state->argv + state->next;
		break;
	case ARGP_KEY_END:
		check_options(options);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/**
 * struct command - the program that is run
 * @pid: its process, or 0.
 * @go: the pipe that it waits for.
 * @failed: the pipe that has the error if it could not be executed.
 */
struct command {
	pid_t pid;
	int go[2];
	int failed[2];
};

static void execute(const struct command *command, char **argv, const sigset_t *signals)
{
	char byte;
	int err;

	/* It does not outlive this program, however that ends. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	close(command->go[1]);
	if (read(command->go[0], &byte, 1) != 1)
		_exit(EXIT_TROUBLE);
	sigprocmask(SIG_UNBLOCK, signals, NULL);
	execvp(*argv, argv);
	err = errno;
	if (write(command->failed[1], &err, sizeof(err)) < 0)
		_exit(EXIT_TROUBLE);
	_exit(EXIT_TROUBLE);
}

/* It executes the command once release_command() lets it. */
static void prepare_command(struct command *command, struct options *options,
			    const sigset_t *signals)
{
	if (!options->command)
		return;
	if (pipe2(command->go, O_CLOEXEC) || pipe2(command->failed, O_CLOEXEC))
		fail("pipe: %s", strerror(errno));
	command->pid = fork();
	if (command->pid < 0)
		fail("fork: %s", strerror(errno));
	if (!command->pid)
		execute(command, options->command, signals);
	close(command->go[0]);
	close(command->failed[1]);
	options->pid = command->pid;
}

static void release_command(const struct command *command, const struct options *options)
{
	int err;

	if (!command->pid)
		return;
	if (write(command->go[1], "", 1) != 1)
		fail("fork: %s", strerror(errno));
	if (read(command->failed[0], &err, sizeof(err)) == sizeof(err))
		fail("%s: %s: give a program, with its path or in $PATH",
		     quote(*options->command, strlen(*options->command)), strerror(err));
}

static int open_output(const struct options *options)
{
	int fd;

	if (!options->output)
		return -1;
	fd = open(options->output, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		fail("-o: %s: %s: give a file that can be written", options->output,
		     strerror(errno));
	return fd;
}

/* Only after the command was started, which has the original. */
static void redirect_output(const struct options *options, int file)
{
	if (options->output && dup2(file, STDOUT_FILENO) < 0)
		fail("%s: %s", options->output, strerror(errno));
}

static int open_pidfd(pid_t pid)
{
	const int fd = syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0 && errno != ESRCH)
		fail("%d is the ID of a thread: give that of its process", pid);
	if (fd < 0)
		fail("process %d has ended: see ps(1)", pid);
	return fd;
}

/* Leave no process behind that this program has started. */
static void end_command(const struct command *command, int process)
{
	struct pollfd ended = { .fd = process, .events = POLLIN };

	if (!command->pid)
		return;
	kill(command->pid, SIGTERM);
	if (!poll(&ended, 1, PATIENCE_MS))
		kill(command->pid, SIGKILL);
	waitpid(command->pid, NULL, 0);
}

/**
 * struct top - what this program does
 * @options: the command line.
 * @events: where samples and events come from.
 * @unwinder: what makes stacks of them.
 * @report: what they have in common.
 * @output: the samples that are printed at the end of a round.
 * @signals: from here signals are read that end it.
 */
struct top {
	struct options options;
	struct events events;
	struct unwinder *unwinder;
	struct report report;
	struct output output;
	int signals;
};

/* The events before the first one did not say it: then it has it from the process. */
static void find_comm(struct procmap_table *table, const struct event *event,
		      char comm[PROCMAP_COMM_SIZE])
{
	char path[sizeof("/proc//comm") + 3 * sizeof(pid_t)];
	FILE *file;

	*comm = '\0';
	if (procmap_table_get_comm(table, event->pid, event->time, comm) != -ENOENT)
		return;
	snprintf(path, sizeof(path), "/proc/%d/comm", event->pid);
	file = fopen(path, "re");
	if (!file)
		return;
	if (fgets(comm, PROCMAP_COMM_SIZE, file)) {
		comm[strcspn(comm, "\n")] = '\0';
		procmap_table_comm(table, event->pid, event->pid, event->time, comm);
	}
	fclose(file);
}

static void handle_sample(struct top *top, const struct event *event)
{
	static struct frame frames[FRAMES_MAX];
	char comm[PROCMAP_COMM_SIZE];
	size_t nr;

	/* Of a process that is not in this PID namespace. */
	if (event->pid <= 0)
		return;
	nr = unwind(top->unwinder, event, frames);
	find_comm(table_of(top->unwinder), event, comm);
	if (top->options.format == SAMPLES)
		print_sample(top->output.file, event, comm, frames, nr);
	add_sample(&top->report, comm, frames, nr);
}

/*
 * Mappings of the process are read at once: its children inherit them, and may have
 * exited before the first sample.
 */
static void know_process(struct top *top)
{
	const struct event event = {
		.pid = top->options.pid,
		.tid = top->options.pid,
		.time = now_ns(),
	};
	const struct procmap_table_mapping *none;
	char comm[PROCMAP_COMM_SIZE];

	if (!event.pid)
		return;
	procmap_table_find(table_of(top->unwinder), event.pid, event.time, 0, &none);
	find_comm(table_of(top->unwinder), &event, comm);
}

/* The table reads processes again that it cannot keep. */
static void handle_event(struct top *top, const struct event *event)
{
	struct procmap_table *const table = table_of(top->unwinder);

	switch (event->type) {
	case PERF_RECORD_SAMPLE:
		handle_sample(top, event);
		break;
	case PERF_RECORD_MMAP2:
		procmap_table_mmap(table, event->pid, event->time, &event->mmap);
		break;
	case PERF_RECORD_FORK:
		procmap_table_fork(table, event->pid, event->tid, event->ppid, event->time);
		break;
	case PERF_RECORD_COMM:
		if (event->is_exec)
			procmap_table_exec(table, event->pid, event->time);
		procmap_table_comm(table, event->pid, event->tid, event->time, event->comm);
		break;
	case PERF_RECORD_EXIT:
		procmap_table_exit(table, event->pid, event->tid, event->time);
		break;
	case PERF_RECORD_LOST:
		if (!event->of_samples)
			procmap_table_lost(table, event->time);
		top->report.lost += event->lost;
		break;
	}
}

static bool is_ready(int fd)
{
	struct pollfd one = { .fd = fd, .events = POLLIN };

	return poll(&one, 1, 0) > 0;
}

/* To unwind takes time: new records are not left to the buffers meanwhile. */
static void handle_events(struct top *top, uint64_t until)
{
	const bool prints = top->options.format == SAMPLES;
	uint64_t read = now_ns();
	struct event event;

	if (prints)
		begin_output(&top->output);
	while (next_event(&top->events, until, &event)) {
		handle_event(top, &event);
		if (now_ns() - read < READ_MS * 1000000)
			continue;
		if (is_ready(top->signals))
			break;
		read_events(&top->events);
		read = now_ns();
	}
	if (prints)
		end_output(&top->output, true);
}

static void show_progress(const struct top *top, uint64_t begun)
{
	if (isatty(STDERR_FILENO) && !isatty(STDOUT_FILENO))
		fprintf(stderr, "\r%.0f s, %" PRIu64 " samples ",
			(now_ns() - begun) / 1e9, top->report.samples);
}

/* The next signal ends this program at once. */
static void take_signals(struct top *top)
{
	struct signalfd_siginfo signal;
	sigset_t all;

	while (is_ready(top->signals) &&
	       read(top->signals, &signal, sizeof(signal)) > 0)
		;
	sigfillset(&all);
	sigprocmask(SIG_UNBLOCK, &all, NULL);
}

/*
 * A round reads what is in the buffers. When it begins, what happened before the one
 * before it has been written by all CPUs, and is handled in the order of time.
 */
static void sample(struct top *top, int process)
{
	const uint64_t begun = now_ns();
	const uint64_t end = top->options.seconds ?
			     begun + top->options.seconds * 1e9 : UINT64_MAX;
	uint64_t before = 0, now = begun;

	while (now < end && !is_ready(top->signals) && !is_ready(process)) {
		const uint64_t left = (end - now) / 1000000 + 1;

		wait_for_events(&top->events, top->signals, process,
				left < ROUND_MS ? left : ROUND_MS);
		now = now_ns();
		read_events(&top->events);
		handle_events(top, before);
		before = now;
		show_progress(top, begun);
	}
	top->report.seconds = (now_ns() - begun) / 1e9;
	stop_events(&top->events);
	take_signals(top);
	read_events(&top->events);
	handle_events(top, UINT64_MAX);
}

/* Report lost records, and files that were not read. */
static void report_what_is_missing(const struct top *top)
{
	const size_t untrusted = nr_untrusted(top->unwinder);

	if (top->report.lost && top->options.format != TABLE)
		warnx("%" PRIu64 " records were lost", top->report.lost);
	if (untrusted)
		warnx("files of other users that were not read: %zu; use -f if you trust them",
		      untrusted);
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = argp_options,
		.parser = parse_option,
		.args_doc = argp_args_doc,
		.doc = argp_doc,
	};
	struct top top = {
		.options = {
			.frequency = 99,
			.rows = 20,
			.stack_size = 8192,
		},
	};
	struct command command = { .pid = 0 };
	int file, process = -1;
	sigset_t signals;

	argp_err_exit_status = EXIT_TROUBLE;
	/* Arguments after the command are its own. */
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &top.options);
	file = open_output(&top.options);

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	top.signals = signalfd(-1, &signals, SFD_CLOEXEC);

	top.unwinder = new_unwinder(top.options.force);
	prepare_command(&command, &top.options, &signals);
	redirect_output(&top.options, file);
	look_at_terminal();
	open_events(&top.events, &top.options);
	if (top.options.pid)
		process = open_pidfd(top.options.pid);
	know_process(&top);
	release_command(&command, &top.options);
	/* From now on there is a result. A pipe has nothing to cut. */
	if (file >= 0 && ftruncate(file, 0) && errno != EINVAL)
		fail("-o: %s: %s", top.options.output, strerror(errno));
	sample(&top, process);
	end_command(&command, process);

	if (top.options.format != SAMPLES)
		print_report(&top.report, &top.options, top.unwinder);
	report_what_is_missing(&top);
	close_events(&top.events);
	free_report(&top.report);
	free_unwinder(top.unwinder);
	return EXIT_SUCCESS;
}
