// SPDX-License-Identifier: GPL-2.0
/*
 * Test how long the live module stays, files that are opened before it is loaded, while
 * it is and after that, and other users of the open method.
 *
 * The module must not be loaded yet. PROCMAP_QUERY_KO is its path, PROCMAP_CONFLICT_KO
 * that of conflict/.
 */
/* The <linux/types.h> in tools/ lacks it, and <linux/fuse.h> needs it. */
#include <linux/posix_types.h>
#include <linux/aio_abi.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/utsname.h>

#include "../kselftest_harness.h"
#include "../proc/procmap_scan_util.h"

#define LIVE_MODULE	"procmap_query"
#define LIVE_KO		"PROCMAP_QUERY_KO"
#define LIVE_PARAMETERS	"scan=1"
#include "live-module.h"

#define TEXT_SIZE	(64u << 10)

/*
 * Scan and query the mapping at an address. Without the module, no kernel has the
 * scan; some have a query of their own.
 */
static int look_up_at(int fd, uint64_t addr, struct procmap_query *answer)
{
	struct procmap_vma vma;
	const struct scan_buffers buffers = { .vec = &vma, .vec_len = 1 };
	struct procmap_scan_arg arg =
		scan_arg(&buffers, addr & -(uint64_t)page_size(), addr + 1, 0);
	int err = procmap_scan(fd, &arg);

	if (err < 0)
		return err;
	err = query_fields(fd, addr, 0, answer);
	if (err)
		return err;
	return vma.start == answer->vma_start && vma.end == answer->vma_end ?
	       0 : -EBADMSG;
}

/* The same for the mapping of this code. */
static int look_up(int fd)
{
	struct procmap_query answer;
	const int err = look_up_at(fd, (uintptr_t)look_up, &answer);

	if (!err && !(answer.vma_flags & PROCMAP_QUERY_VMA_EXECUTABLE))
		return -EBADMSG;
	return err;
}

static int look_up_new(void)
{
	const int fd = open_maps(0);
	const int err = look_up(fd);

	close(fd);
	return err;
}

static bool can_read_text(int fd)
{
	struct maps maps;

	if (read_maps(fd, &maps) || !maps.nr)
		return false;
	free_maps(&maps);
	return true;
}

FIXTURE(live)
{
	struct child still;
};

FIXTURE_SETUP(live)
{
	ASSERT_FALSE(live_is_loaded());
	ASSERT_TRUE(start_child(&self->still, keep_still, NULL));
}

FIXTURE_TEARDOWN(live)
{
	stop_child(&self->still);
	unload_module("procmap_conflict");
	if (live_is_loaded())
		live_unload();
}

TEST_F(live, file_opened_before_goes_on_without)
{
	const int before = open_maps(0);

	ASSERT_LE(0, before);
	EXPECT_EQ(-ENOTTY, look_up(before));
	ASSERT_EQ(0, live_load());
	EXPECT_EQ(-ENOTTY, look_up(before));
	EXPECT_TRUE(can_read_text(before));
	EXPECT_EQ(0, look_up_new());
	close(before);
}

TEST_F(live, file_opened_under_it_keeps_the_module)
{
	int fd, copy, idle;

	ASSERT_EQ(0, live_load());
	idle = live_references();

	fd = open_maps(0);
	EXPECT_EQ(idle + 1, live_references());
	EXPECT_EQ(-EAGAIN, live_unload());
	copy = dup(fd);
	close(fd);
	EXPECT_EQ(idle + 1, live_references());
	EXPECT_EQ(0, look_up(copy));
	close(copy);
	EXPECT_EQ(idle, live_references());
}

TEST_F(live, ftrace_that_is_off_refuses_it)
{
	const char *const enabled = "/proc/sys/kernel/ftrace_enabled";
	int err;

	if (!write_file(enabled, "0"))
		SKIP(return, "this kernel does not turn ftrace off");
	err = live_load();
	ASSERT_TRUE(write_file(enabled, "1"));
	EXPECT_EQ(-EBUSY, err);
	EXPECT_FALSE(live_is_loaded());

	ASSERT_EQ(0, live_load());
	EXPECT_FALSE(write_file(enabled, "0"));
	EXPECT_EQ(0, look_up_new());
}

/* How often the module has said since the last call that it leaves the text alone. */
static unsigned int refusals_in_log(void)
{
	static char log[1 << 20];
	const int size = klogctl(4, log, sizeof(log) - 1);	/* read and clear */
	const char *at = log;
	unsigned int nr = 0;

	log[size < 0 ? 0 : size] = '\0';
	while ((at = strstr(at, "the text of maps is left as it is: "))) {
		at++;
		nr++;
	}
	return nr;
}

/* Before 6.12, it does not try. */
TEST_F(live, text_is_made_without_mmap_lock_or_the_log_has_the_reason)
{
	struct utsname name;
	unsigned int major, minor;

	ASSERT_TRUE(!uname(&name) && sscanf(name.release, "%u.%u.", &major, &minor) == 2);
	if (text_has_positions("/proc/self/maps"))
		SKIP(return, "this kernel's own text has positions");
	refusals_in_log();
	ASSERT_EQ(0, live_load());
	EXPECT_EQ(major > 6 || minor >= 12,
		  text_has_positions("/proc/self/maps") + refusals_in_log());

	ASSERT_EQ(0, live_unload());
	ASSERT_EQ(0, load_module(live_ko, "text=0"));
	EXPECT_FALSE(text_has_positions("/proc/self/maps"));
	EXPECT_EQ(0u, refusals_in_log());
}

static int load_conflict(const char *how)
{
	const char *const path = getenv("PROCMAP_CONFLICT_KO");
	char parameters[32];
	int fd, err;

	if (!path)
		ksft_exit_skip("PROCMAP_CONFLICT_KO is not set\n");
	snprintf(parameters, sizeof(parameters), "how=%s", how);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	err = load_module(fd, parameters);
	close(fd);
	return err;
}

/* Livepatch lets the module go a moment after the patch is disabled. */
static int unload_conflict(void)
{
	const time_t end = time(NULL) + TRANSITION_MAX;
	int err;

	do {
		write_file("/sys/kernel/livepatch/procmap_conflict/enabled", "0");
		err = unload_module("procmap_conflict");
	} while (err == -EAGAIN && time(NULL) < end);
	return err;
}

/*
 * The module does not load beside them, since it opens a file itself. If they come later,
 * a file that is not opened after all leaves no reference behind.
 */
TEST_F_TIMEOUT(live, others_may_refuse_to_open, 600)
{
	const char *const methods[] = { "livepatch", "kprobe" };
	unsigned int i;
	int idle, err;

	for (i = 0; i < ARRAY_SIZE(methods); i++) {
		err = load_conflict(methods[i]);
		if (err == -EOPNOTSUPP)		/* no livepatch on arm64 */
			continue;
		ASSERT_EQ(0, err);
		EXPECT_EQ(-EPERM, live_load());
		ASSERT_EQ(0, unload_conflict());

		ASSERT_EQ(0, live_load());
		idle = live_references();
		ASSERT_EQ(0, load_conflict(methods[i]));
		EXPECT_EQ(-EPERM, open_maps(0));
		ASSERT_EQ(0, unload_conflict());
		EXPECT_EQ(idle, live_references());
		EXPECT_EQ(0, look_up_new());
		ASSERT_EQ(0, live_unload());
	}
}

/* A file system that is this one file. The test is its server. */
#define FUSE_FILE	SCRATCH "/file"

static bool get_request(int device, uint32_t opcode, struct fuse_in_header *request)
{
	char bytes[FUSE_MIN_READ_BUFFER];

	if (read(device, bytes, sizeof(bytes)) < (ssize_t)sizeof(*request))
		return false;
	memcpy(request, bytes, sizeof(*request));
	return request->opcode == opcode;
}

/* If there is no error, the request is FUSE_INIT. */
static bool answer_request(int device, const struct fuse_in_header *request, int err)
{
	struct {
		struct fuse_out_header header;
		struct fuse_init_out init;
	} reply = {
		.header.len = err ? sizeof(reply.header) : sizeof(reply),
		.header.error = err,
		.header.unique = request->unique,
		.init.major = FUSE_KERNEL_VERSION,
		.init.minor = FUSE_KERNEL_MINOR_VERSION,
	};

	return write(device, &reply, reply.header.len) ==
	       (ssize_t)reply.header.len;
}

/* Returns the device of the server, or -1. */
static int mount_fuse_file(void)
{
	const int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	struct fuse_in_header request;
	char options[64];

	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=100600,user_id=0,group_id=0", device);
	close(open(FUSE_FILE, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	return !mount("fuse", FUSE_FILE, "fuse", 0, options) &&
	       get_request(device, FUSE_INIT, &request) &&
	       answer_request(device, &request, 0) ? device : -1;
}

/*
 * execve(2) lets a parent that waits as vfork(2) does go on. Then it replaces the address space
 * under exec_update_lock, and waits for the requests of the old one, which end with the
 * server: it alone has the device open.
 */
static int execute(int control, void *device)
{
	struct iocb file_sync = {
		.aio_lio_opcode = IOCB_CMD_FSYNC,
		.aio_fildes = open(FUSE_FILE, O_RDWR),
	};
	struct iocb *request = &file_sync;
	aio_context_t context = 0;
	int status = 0;
	pid_t pid;

	close(*(int *)device);
	pid = syscall(SYS_clone, CLONE_VFORK | SIGCHLD, NULL, NULL, NULL, NULL);
	if (!pid) {
		if (!syscall(SYS_io_setup, 1, &context) &&
		    syscall(SYS_io_submit, context, 1, &request) == 1)
			execl("/bin/true", "true", NULL);
		_exit(1);
	}
	return write(control, &pid, sizeof(pid)) != sizeof(pid) ||
	       waitpid(pid, &status, 0) != pid || status;
}

/* Tell when it is open, and keep it open. */
static int open_maps_of(int control, void *pid)
{
	if (open_maps(*(pid_t *)pid) < 0 || !notify(control))
		return 1;
	return pause();
}

TEST_F_TIMEOUT(live, open_that_waits_for_execve_keeps_the_module, 600)
{
	const char *const why = mount_scratch();
	int device = why ? -1 : mount_fuse_file();
	struct child executing, opening;
	struct fuse_in_header request;
	pid_t executed;
	bool waits;
	char byte;
	int idle;

	ASSERT_TRUE(!why && device >= 0);
	ASSERT_TRUE(start_child(&executing, execute, &device));
	ASSERT_TRUE(get_request(device, FUSE_OPEN, &request));
	ASSERT_TRUE(answer_request(device, &request, -ENOSYS));
	ASSERT_TRUE(get_request(device, FUSE_FSYNC, &request));
	/*
	 * The server must not ask /proc then: most files take exec_update_lock, or a
	 * reference on the address space, of which the last one waits, too.
	 */
	ASSERT_EQ((ssize_t)sizeof(executed),
		  read(executing.control, &executed, sizeof(executed)));
	sleep(1);

	ASSERT_EQ(0, live_load());
	idle = live_references();
	ASSERT_TRUE(start_child(&opening, open_maps_of, &executed));
	while (live_references() == idle)
		sched_yield();
	sleep(1);
	waits = recv(opening.control, &byte, 1, MSG_DONTWAIT) < 0;
	EXPECT_EQ(idle + 1, live_references());
	EXPECT_EQ(-EAGAIN, live_unload());
	stop_child(&opening);
	EXPECT_EQ(idle, live_references());
	EXPECT_EQ(0, live_unload());
	close(device);
	EXPECT_EQ(0, end_of_child(&executing));
	/* Linux 7.3 drops the old address space without that lock. */
	if (!waits)
		SKIP(return, "this kernel opens maps while execve(2) waits");
}

/* The workers open, read, query and close without a pause. */
enum role { BY_PROCESS, BY_THREAD, OF_EXITING, NR_WORKERS };

/* All workers share this. */
struct work {
	pid_t target;
	atomic_bool stop;
	size_t size;
	char text[TEXT_SIZE];	/* of the target */
	uint64_t addr;		/* in this mapping of it */
	struct procmap_query expected;
	struct {
		atomic_uint answers;
		unsigned int refusals;
		unsigned int failures;
	} workers[NR_WORKERS];
};

static size_t read_text(int fd, char *text)
{
	size_t size = 0;
	ssize_t n;

	while ((n = read(fd, text + size, TEXT_SIZE - size)) > 0)
		size += n;
	return n ? 0 : size;
}

static void ignore_signal(int signal)
{
}

static void get_a_signal_each_ms(void)
{
	const struct itimerval each_ms = { { 0, 1000 }, { 0, 1000 } };
	const struct sigaction action = { .sa_handler = ignore_signal };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &each_ms, NULL);
}

static void be_reader(struct work *work, enum role id)
{
	struct procmap_query answer;
	char path[64], text[TEXT_SIZE];
	int fd, err;

	snprintf(path, sizeof(path), id == BY_THREAD ? "/proc/%1$d/task/%1$d/maps" :
						       "/proc/%1$d/maps", work->target);
	get_a_signal_each_ms();
	while (!work->stop) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || read_text(fd, text) != work->size ||
		    memcmp(text, work->text, work->size))
			work->workers[id].failures++;
		err = look_up_at(fd, work->addr, &answer);
		if (err == -ENOTTY)
			work->workers[id].refusals++;
		else if (!err && !memcmp(&answer, &work->expected,
					 sizeof(answer)))
			work->workers[id].answers++;
		else
			work->workers[id].failures++;
		close(fd);
	}
}

/* A file may be opened at any time of the target's end. */
static void open_those_of_exiting(struct work *work)
{
	while (!work->stop) {
		const pid_t pid = fork();
		int fd, err = 0;

		if (!pid)
			_exit(0);
		fd = open_maps(pid);
		if (fd >= 0)
			err = look_up(fd);
		if (fd >= 0 ? err && err != -ESRCH && err != -ENOTTY : fd != -ESRCH)
			work->workers[OF_EXITING].failures++;
		work->workers[OF_EXITING].answers += !err;
		work->workers[OF_EXITING].refusals += err == -ENOTTY;
		close(fd);
		waitpid(pid, NULL, 0);
	}
}

static int be_worker(struct work *work, enum role id)
{
	if (id == OF_EXITING)
		open_those_of_exiting(work);
	else
		be_reader(work, id);
	return 0;
}

static unsigned int nr_rounds(void)
{
	const char *rounds = getenv("PROCMAP_QUERY_ROUNDS");

	return rounds ? atoi(rounds) : 100;
}

/* Record the text of the target, and the answer to one query. */
static void record_target(struct __test_metadata *const _metadata, struct work *work,
			  pid_t target)
{
	struct maps maps;
	int fd;

	work->target = target;
	ASSERT_EQ(0, live_load());
	fd = open_maps(target);
	work->size = read_text(fd, work->text);
	ASSERT_LT(0u, work->size);
	ASSERT_EQ(0, read_maps(fd, &maps));
	work->addr = maps.lines[maps.nr / 2].start;
	ASSERT_EQ(0, look_up_at(fd, work->addr, &work->expected));
	EXPECT_TRUE(same_fields(&maps.lines[maps.nr / 2], &work->expected));
	free_maps(&maps);
	close(fd);
	ASSERT_EQ(0, live_unload());
}

TEST_F_TIMEOUT(live, comes_and_goes_under_load, 3600)
{
	const char *const cpu1 = "/sys/devices/system/cpu/cpu1/online";
	struct work *const work = mmap(NULL, sizeof(*work),
				       PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t workers[NR_WORKERS];
	unsigned int i;
	int status;

	ASSERT_TRUE(work != MAP_FAILED);
	record_target(_metadata, work, self->still.pid);
	for (i = 0; i < NR_WORKERS; i++) {
		workers[i] = fork();
		if (!workers[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			_exit(be_worker(work, i));
		}
		ASSERT_LT(0, workers[i]);
	}

	/* On a busy machine the rounds are shorter than the turns of a worker. */
	ASSERT_EQ(0, live_load());
	for (i = 0; i < NR_WORKERS; i++) {
		while (!work->workers[i].answers)
			usleep(1000);
	}
	ASSERT_EQ(0, live_unload_and_wait());

	/* In some rounds a CPU goes or comes meanwhile. */
	for (i = 0; i < nr_rounds(); i++) {
		ASSERT_EQ(0, live_load());
		if (i % 10 == 5)
			write_file(cpu1, i % 20 == 5 ? "0" : "1");
		ASSERT_EQ(0, live_unload_and_wait());
	}
	write_file(cpu1, "1");

	work->stop = true;
	for (i = 0; i < NR_WORKERS; i++) {
		ASSERT_EQ(workers[i], waitpid(workers[i], &status, 0));
		EXPECT_EQ(0, status);
		EXPECT_EQ(0u, work->workers[i].failures);
		EXPECT_LT(0u, atomic_load(&work->workers[i].answers));
		EXPECT_LT(0u, work->workers[i].refusals);
		TH_LOG("%u answers, %u without the module",
		       work->workers[i].answers, work->workers[i].refusals);
	}
}

TEST_HARNESS_MAIN
