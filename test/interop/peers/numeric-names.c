/* Makes every reverse name lookup numeric. Torch looks up the name of each peer for its logs, its libuv server within its
   event loop; a resolver that does not answer then costs seconds at every connect, and a benchmark would measure the resolver. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <sys/socket.h>

int getnameinfo(const struct sockaddr *address, socklen_t length, char *host, socklen_t host_length, char *service,
                socklen_t service_length, int flags) {
  int (*next)(const struct sockaddr *, socklen_t, char *, socklen_t, char *, socklen_t, int) =
      dlsym(RTLD_NEXT, "getnameinfo");
  return next(address, length, host, host_length, service, service_length, flags | NI_NUMERICHOST | NI_NUMERICSERV);
}
