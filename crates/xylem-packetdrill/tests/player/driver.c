/* A C program that opens the library as packetdrill does and does with it what its standard input says, a line each. The
 * types are those of the C library, so the compiler agrees with the library on every one of them, the variable arguments
 * among them. What a line means stands beside the function that obeys it; every line is answered by one. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

/* The table of functions, by the order in which the interface has them. */
struct table {
    void *run;
    void (*free)(void *);
    int (*socket)(void *, int, int, int);
    int (*bind)(void *, int, const struct sockaddr *, socklen_t);
    int (*listen)(void *, int, int);
    int (*accept)(void *, int, struct sockaddr *, socklen_t *);
    int (*connect)(void *, int, const struct sockaddr *, socklen_t);
    ssize_t (*read)(void *, int, void *, size_t);
    ssize_t (*readv)(void *, int, const struct iovec *, int);
    ssize_t (*recv)(void *, int, void *, size_t, int);
    ssize_t (*recvfrom)(void *, int, void *, size_t, int, struct sockaddr *, socklen_t *);
    ssize_t (*recvmsg)(void *, int, struct msghdr *, int);
    ssize_t (*write)(void *, int, const void *, size_t);
    ssize_t (*writev)(void *, int, const struct iovec *, int);
    ssize_t (*send)(void *, int, const void *, size_t, int);
    ssize_t (*sendto)(void *, int, const void *, size_t, int, const struct sockaddr *, socklen_t);
    ssize_t (*sendmsg)(void *, int, const struct msghdr *, int);
    int (*fcntl)(void *, int, int, ...);
    int (*ioctl)(void *, int, unsigned long, ...);
    int (*close)(void *, int);
    int (*shutdown)(void *, int, int);
    int (*getsockopt)(void *, int, int, int, void *, socklen_t *);
    int (*setsockopt)(void *, int, int, int, const void *, socklen_t);
    int (*poll)(void *, struct pollfd *, nfds_t, int);
    int (*netdev_send)(void *, const void *, size_t);
    int (*netdev_receive)(void *, void *, size_t *, long long *);
    int (*usleep)(void *, useconds_t);
    int (*gettimeofday)(void *, struct timeval *, struct timezone *);
    int (*epoll_create)(void *, int);
    int (*epoll_ctl)(void *, int, int, int, struct epoll_event *);
    int (*epoll_wait)(void *, int, struct epoll_event *, int, int);
    int (*pipe)(void *, int[2]);
    ssize_t (*splice)(void *, int, loff_t *, int, loff_t *, size_t, unsigned int);
};

enum { ARGUMENTS_MAX = 10, LINE_MAX_BYTES = 1 << 20, SPIN_MICROS = 20 };

/* An argument: a number; or bytes that are handed over, or room for some; or a vector of pieces. */
struct argument {
    long number;
    unsigned char *bytes;
    size_t length;
    int is_room;
    struct iovec *pieces;
};

/* A call, its arguments, and what came of it. */
struct call {
    char name[32];
    struct argument arguments[ARGUMENTS_MAX];
    int count;
    long result;
    int error;
    long long ended;
    volatile long thread;
    volatile int done;
};

static struct table table;
static char line[LINE_MAX_BYTES];
static struct call blocked;
static pthread_t blocked_thread;

static long long now(void) {
    struct timeval time = {0, 0};
    table.gettimeofday(table.run, &time, NULL);
    return time.tv_sec * 1000000LL + time.tv_usec;
}

static unsigned digit(int letter) {
    return letter <= '9' ? letter - '0' : letter - 'a' + 10;
}

static size_t from_hex(const char *text, unsigned char *into) {
    size_t length = 0;
    for (; text[0] && text[1]; text += 2)
        into[length++] = digit(text[0]) << 4 | digit(text[1]);
    return length;
}

static void print_hex(const unsigned char *bytes, size_t length) {
    for (size_t at = 0; at < length; at++)
        printf("%02x", bytes[at]);
}

/* `7`, `null`, `x:HEX` bytes, `p:HEX` bytes that the call may change, `o:COUNT` room, `z:COUNT` zeros, `l:NUMBER` a pointer to a length, `v:COUNT,COUNT` a vector of
 * room or zeros. */
static void read_argument(const char *word, struct argument *argument) {
    memset(argument, 0, sizeof *argument);
    if (!strncmp(word, "x:", 2) || !strncmp(word, "p:", 2)) {
        argument->bytes = calloc(1, strlen(word));
        argument->length = from_hex(word + 2, argument->bytes);
        argument->is_room = word[0] == 'p';
    } else if (!strncmp(word, "o:", 2) || !strncmp(word, "z:", 2)) {
        argument->length = strtoul(word + 2, NULL, 10);
        argument->bytes = calloc(1, argument->length + 1);
        argument->is_room = word[0] == 'o';
    } else if (!strncmp(word, "l:", 2)) {
        socklen_t length = strtoul(word + 2, NULL, 10);
        argument->length = sizeof length;
        argument->bytes = calloc(1, sizeof length);
        memcpy(argument->bytes, &length, sizeof length);
        argument->is_room = 1;
    } else if (!strncmp(word, "v:", 2)) {
        argument->pieces = calloc(ARGUMENTS_MAX, sizeof *argument->pieces);
        for (char *at = (char *)word + 1; at && argument->number < ARGUMENTS_MAX; at = strchr(at + 1, ',')) {
            size_t length = strtoul(at + 1, NULL, 10);
            argument->pieces[argument->number].iov_base = calloc(1, length + 1);
            argument->pieces[argument->number++].iov_len = length;
        }
    } else {
        argument->number = strcmp(word, "null") ? strtol(word, NULL, 10) : 0;
    }
}

static void read_call(struct call *call, char *words) {
    char *rest = words;
    snprintf(call->name, sizeof call->name, "%s", strtok_r(words, " ", &rest));
    call->count = 0;
    for (char *word; call->count < ARGUMENTS_MAX && (word = strtok_r(NULL, " ", &rest));)
        read_argument(word, &call->arguments[call->count++]);
    for (int at = call->count; at < ARGUMENTS_MAX; at++)
        memset(&call->arguments[at], 0, sizeof call->arguments[at]);
    call->done = 0;
}

static long run_message(struct call *call, int receives) {
    struct argument *a = call->arguments;
    struct msghdr message;
    memset(&message, 0, sizeof message);
    message.msg_iov = a[1].pieces;
    message.msg_iovlen = a[1].number;
    return receives ? table.recvmsg(table.run, a[0].number, &message, a[2].number)
                    : table.sendmsg(table.run, a[0].number, &message, a[2].number);
}

static long dispatch(struct call *call) {
    struct argument *a = call->arguments;
    void *run = table.run;
    const char *name = call->name;
#define N(i) a[i].number
#define P(i) ((void *)a[i].bytes)
#define IS(word) (!strcmp(name, word))
    if (IS("socket")) return table.socket(run, N(0), N(1), N(2));
    if (IS("bind")) return table.bind(run, N(0), P(1), N(2));
    if (IS("listen")) return table.listen(run, N(0), N(1));
    if (IS("accept")) return table.accept(run, N(0), P(1), P(2));
    if (IS("connect")) return table.connect(run, N(0), P(1), N(2));
    if (IS("read")) return table.read(run, N(0), P(1), N(2));
    if (IS("readv")) return table.readv(run, N(0), a[1].pieces, N(2));
    if (IS("recv")) return table.recv(run, N(0), P(1), N(2), N(3));
    if (IS("recvfrom")) return table.recvfrom(run, N(0), P(1), N(2), N(3), P(4), P(5));
    if (IS("recvmsg")) return run_message(call, 1);
    if (IS("write")) return table.write(run, N(0), P(1), N(2));
    if (IS("writev")) return table.writev(run, N(0), a[1].pieces, N(2));
    if (IS("send")) return table.send(run, N(0), P(1), N(2), N(3));
    if (IS("sendto")) return table.sendto(run, N(0), P(1), N(2), N(3), P(4), N(5));
    if (IS("sendmsg")) return run_message(call, 0);
    if (IS("fcntl")) return call->count < 3 ? table.fcntl(run, N(0), N(1)) : table.fcntl(run, N(0), N(1), (int)N(2));
    if (IS("ioctl")) return table.ioctl(run, N(0), N(1), P(2));
    if (IS("close")) return table.close(run, N(0));
    if (IS("shutdown")) return table.shutdown(run, N(0), N(1));
    if (IS("getsockopt")) return table.getsockopt(run, N(0), N(1), N(2), P(3), P(4));
    if (IS("setsockopt")) return table.setsockopt(run, N(0), N(1), N(2), P(3), N(4));
    if (IS("poll")) return table.poll(run, P(0), N(1), N(2));
    if (IS("epoll_create")) return table.epoll_create(run, N(0));
    if (IS("epoll_ctl")) return table.epoll_ctl(run, N(0), N(1), N(2), P(3));
    if (IS("epoll_wait")) return table.epoll_wait(run, N(0), P(1), N(2), N(3));
    if (IS("pipe")) return table.pipe(run, P(0));
    if (IS("splice")) return table.splice(run, N(0), NULL, N(2), NULL, N(4), N(5));
    if (IS("netdev_send")) return table.netdev_send(run, P(0), N(1));
    if (IS("netdev_receive")) return table.netdev_receive(run, P(0), P(1), P(2));
    if (IS("gettimeofday")) return table.gettimeofday(run, P(0), NULL);
    fprintf(stderr, "driver: no call is named %s\n", name);
    exit(2);
}

static void *run_call(void *argument) {
    struct call *call = argument;
    call->thread = syscall(SYS_gettid);
    errno = 0;
    call->result = dispatch(call);
    call->error = errno;
    call->ended = now();
    call->done = 1;
    return NULL;
}

/* `RESULT ERRNO MICROSECONDS`, and the bytes in each room. */
static void answer(struct call *call) {
    printf("%ld %d %lld", call->result, call->result < 0 ? call->error : 0, call->ended);
    for (int at = 0; at < call->count; at++) {
        struct argument *argument = &call->arguments[at];
        if (argument->is_room) {
            putchar(' ');
            print_hex(argument->bytes, argument->length);
        }
        free(argument->bytes);
        for (int piece = 0; argument->pieces && piece < argument->number; piece++)
            free(argument->pieces[piece].iov_base);
        free(argument->pieces);
    }
    putchar('\n');
}

/* Whether a thread sleeps in the kernel, by its letter in /proc. */
static int sleeps(long thread) {
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%ld/stat", thread);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    char *got = fgets(text, sizeof text, file);
    fclose(file);
    char *end = got ? strrchr(text, ')') : NULL;
    return end && end[1] == ' ' && end[2] == 'S';
}

/* `block CALL`: it runs in a thread of its own; answered when that sleeps or has come back. */
static void start_blocked(char *words) {
    read_call(&blocked, words);
    blocked.thread = 0;
    pthread_create(&blocked_thread, NULL, run_call, &blocked);
    int looks = 0;
    for (; looks < 2000 && !blocked.done; looks++) {
        if (blocked.thread && sleeps(blocked.thread))
            break;
        usleep(1000);
    }
    puts(blocked.done ? "done" : looks < 2000 ? "blocked" : "spins");
}

/* `until MICROSECONDS`: sleeps until shortly before and looks at the clock from there, as packetdrill waits. */
static void wait_until(long long time) {
    long long left = time - now();
    if (left > SPIN_MICROS)
        table.usleep(table.run, left - SPIN_MICROS);
    while (now() < time)
        ;
    printf("%lld\n", now());
}

static void receive(void) {
    static unsigned char packet[65536];
    size_t length = sizeof packet;
    long long time = 0;
    int result = table.netdev_receive(table.run, packet, &length, &time);
    printf("%d %zu %lld ", result, length, time);
    print_hex(packet, length);
    putchar('\n');
}

int main(int count, char **words) {
    if (count != 3) {
        fprintf(stderr, "driver: expected a library and its flags\n");
        return 2;
    }
    void *library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | RTLD_DEEPBIND);
    if (!library) {
        fprintf(stderr, "driver: %s\n", dlerror());
        return 2;
    }
    void (*init)(const char *, struct table *) = dlsym(library, "packetdrill_interface_init");
    if (!init) {
        fprintf(stderr, "driver: %s\n", dlerror());
        return 2;
    }
    init(strcmp(words[2], "null") ? words[2] : NULL, &table);
    setvbuf(stdout, NULL, _IOLBF, 1 << 16);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (!strcmp(line, "now")) {
            printf("%lld\n", now());
        } else if (!strncmp(line, "until ", 6)) {
            wait_until(strtoll(line + 6, NULL, 10));
        } else if (!strcmp(line, "out")) {
            receive();
        } else if (!strncmp(line, "in ", 3)) {
            static unsigned char packet[LINE_MAX_BYTES];
            size_t length = from_hex(line + 3, packet);
            printf("%d\n", table.netdev_send(table.run, packet, length));
        } else if (!strncmp(line, "call ", 5)) {
            static struct call call;
            read_call(&call, line + 5);
            run_call(&call);
            answer(&call);
        } else if (!strncmp(line, "block ", 6)) {
            start_blocked(line + 6);
        } else if (!strcmp(line, "join")) {
            pthread_join(blocked_thread, NULL);
            answer(&blocked);
        } else if (!strcmp(line, "is done")) {
            puts(blocked.done ? "done" : "blocked");
        } else if (!strcmp(line, "free")) {
            table.free(table.run);
            puts("freed");
        } else if (!strcmp(line, "info")) {
            /* Where TCP_INFO has its members, for the test of the layout. */
            printf("%zu %zu %zu %zu %zu %zu\n", offsetof(struct tcp_info, tcpi_snd_mss),
                   offsetof(struct tcp_info, tcpi_unacked), offsetof(struct tcp_info, tcpi_rtt),
                   offsetof(struct tcp_info, tcpi_snd_ssthresh), offsetof(struct tcp_info, tcpi_snd_cwnd),
                   offsetof(struct tcp_info, tcpi_total_retrans));
        } else {
            fprintf(stderr, "driver: what is `%s`?\n", line);
            return 2;
        }
    }
    return 0;
}
