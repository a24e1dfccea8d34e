// libwebsockets, on one thread with its own loop. Its buffers hold a whole message, so that one call of the callback
// delivers it if the kernel has all of it.

#define _GNU_SOURCE
#include <libwebsockets.h>

#include "contract.h"

enum { message_bytes_max = 64 << 10 };

typedef struct {
  struct lws *socket;
  size_t received;  // bytes of the current echo
} Connection;

static const Workload *workload;
static struct lws_context *context;
static Connection connections[connections_max];
static int opened;
// The next message of any connection. The library masks it in place, and copies what the kernel does not take.
static unsigned char frame[LWS_PRE + message_bytes_max];
static uint64_t unsent, unfinished;

static void send_message(struct lws *socket) {
  memset(frame + LWS_PRE, 'm', workload->body_bytes);
  if (lws_write(socket, frame + LWS_PRE, workload->body_bytes, LWS_WRITE_BINARY) < (int)workload->body_bytes)
    fail("lws_write failed");
}

// Takes bytes of an echo. The next message is sent when the socket is writable, as the library requires.
static void receive(Connection *connection, size_t count) {
  connection->received += count;
  if (!lws_is_final_fragment(connection->socket)) return;
  if (connection->received != workload->body_bytes) fail("the echo is not as long as the message");
  unfinished--;
  if (unsent > 0) {
    unsent--;
    connection->received = 0;
    lws_callback_on_writable(connection->socket);
  }
}

static int called(struct lws *socket, enum lws_callback_reasons reason, void *user, void *bytes, size_t count) {
  Connection *connection = user;
  switch (reason) {
    case LWS_CALLBACK_CLIENT_ESTABLISHED: opened++; break;
    case LWS_CALLBACK_CLIENT_WRITEABLE:
      if (unfinished > 0) send_message(socket);
      break;
    case LWS_CALLBACK_CLIENT_RECEIVE: receive(connection, count); break;
    case LWS_CALLBACK_CLIENT_CONNECTION_ERROR: fail("the WebSocket does not open: %s", bytes ? (char *)bytes : "");
    case LWS_CALLBACK_CLIENT_CLOSED: fail("the server closed the WebSocket");
    default: break;
  }
  return 0;
}

static void serve(void) {
  if (lws_service(context, 0) < 0) fail("lws_service failed");
}

static void run(uint64_t requests) {
  unsent = unfinished = requests;
  for (int index = 0; index < workload->connections && unsent > 0; index++, unsent--) {
    connections[index].received = 0;
    lws_callback_on_writable(connections[index].socket);
  }
  while (unfinished > 0) serve();
}

int main(int argument_count, char **argument_values) {
  Arguments arguments = parse_arguments_for(websocket, argument_count, argument_values);
  workload = arguments.workload;
  static const struct lws_protocols protocols[] = {
      {.name = "echo", .callback = called, .rx_buffer_size = message_bytes_max}, {.name = NULL}};
  struct lws_context_creation_info info = {
      .port = CONTEXT_PORT_NO_LISTEN, .protocols = protocols, .pt_serv_buf_size = message_bytes_max + 64};
  lws_set_log_level(LLL_ERR, NULL);
  context = lws_create_context(&info);
  if (!context) fail("lws_create_context failed");
  for (int index = 0; index < workload->connections; index++) {
    struct lws_client_connect_info wanted = {
        .context = context, .address = arguments.host, .port = arguments.port, .path = workload->path,
        .host = arguments.host, .origin = arguments.host, .local_protocol_name = "echo",
        .userdata = &connections[index], .pwsi = &connections[index].socket};
    if (!lws_client_connect_via_info(&wanted)) fail("lws_client_connect_via_info failed");
  }
  while (opened < workload->connections) serve();

  run(arguments.warm_up_requests);
  Start start = start_measuring(&arguments);
  run(arguments.requests);
  finish_measuring(&arguments, start, arguments.requests * workload->body_bytes);
  return 0;
}
