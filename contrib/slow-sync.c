/* Delays every fdatasync and fsync of a program, to simulate a disk with slow syncs.
 *
 *     cc -O2 -shared -fPIC -o slow-sync.so contrib/slow-sync.c -ldl
 *     SLOW_SYNC_US=5000 LD_PRELOAD=$PWD/slow-sync.so bimetal serve STORE
 *
 * SLOW_SYNC_US is the delay in microseconds, 5000 by default. Threads are delayed concurrently, because the calls of several
 * threads overlap on a real disk.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_longer(void)
{
	const char *text = getenv("SLOW_SYNC_US");
	usleep(text ? (useconds_t)strtoul(text, NULL, 10) : 5000);
}

static int slow(const char *name, int fd)
{
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
	int result = real(fd);

	wait_longer();
	return result;
}

int fdatasync(int fd)
{
	return slow("fdatasync", fd);
}

int fsync(int fd)
{
	return slow("fsync", fd);
}
