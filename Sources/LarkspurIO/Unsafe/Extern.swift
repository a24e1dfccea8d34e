// The parts of C that this module uses. `CLarkspurLinux` is linked, not imported, so that clients need no module
// map: see decision 35. `CLarkspurLinux.h` describes the functions. `ExternTests` compares these declarations with the headers.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

// Constants that the module map of the C library leaves out, or whose type depends on the library.
let EPOLLIN: UInt32 = 0x001
let EPOLLOUT: UInt32 = 0x004
let EPOLLERR: UInt32 = 0x008
let EPOLLHUP: UInt32 = 0x010
let EPOLLRDHUP: UInt32 = 0x2000
let EPOLLET: UInt32 = 0x8000_0000
let POLLRDHUP: Int16 = 0x2000
let SOCK_STREAM: Int32 = 1
let MSG_DONTWAIT: Int32 = 0x40
let MSG_NOSIGNAL: Int32 = 0x4000
let EAI_NODATA: Int32 = -5
let EAI_ADDRFAMILY: Int32 = -9
let FALLOC_FL_KEEP_SIZE: Int32 = 1
let O_PATH: Int32 = 0x20_0000
let RTMGRP_LINK: UInt32 = 0x001
let RTMGRP_IPV4_IFADDR: UInt32 = 0x010
let RTMGRP_IPV4_ROUTE: UInt32 = 0x040
let RTMGRP_IPV6_IFADDR: UInt32 = 0x100
let RTMGRP_IPV6_ROUTE: UInt32 = 0x400
let LARKSPUR_EVENTS_MAX: Int32 = 128

struct larkspur_event {
  var events: UInt32 = 0
  var slot: UInt32 = 0
  var registration: UInt32 = 0
}

struct larkspur_file_facts {
  var size: Int64 = 0
  var used: Double = 0
  var changed: Double = 0
}

struct larkspur_file_status {
  var size: Int64 = 0
  var modification_seconds: Int64 = 0
  var modification_nanoseconds: UInt32 = 0
  var inode: UInt64 = 0
  var allocated: Int64 = 0
}

struct larkspur_access {
  var user: UInt32 = 0
  var group: UInt32 = 0
  var mode: UInt32 = 0
  var size: Int64 = 0
  var inode: UInt64 = 0
}

struct larkspur_identity {
  var device: UInt64 = 0
  var number: UInt64 = 0
  var type: UInt32 = 0
  var born: Int64 = 0
}

@_extern(c) func pthread_self() -> UInt
@discardableResult
@_extern(c) func pthread_setname_np(_ thread: UInt, _ name: UnsafePointer<CChar>?) -> Int32
@_extern(c) func fgetxattr(
  _ file: Int32, _ name: UnsafePointer<CChar>?, _ value: UnsafeMutableRawPointer?, _ count: Int
) -> Int
@_extern(c) func fsetxattr(
  _ file: Int32, _ name: UnsafePointer<CChar>?, _ value: UnsafeRawPointer?, _ count: Int, _ flags: Int32
) -> Int32
@_extern(c) func larkspur_epoll_create() -> Int32
@_extern(c) func larkspur_epoll_add(
  _ poller: Int32, _ descriptor: Int32, _ events: UInt32, _ slot: UInt32, _ registration: UInt32
) -> Int32
@_extern(c) func larkspur_epoll_wait(
  _ poller: Int32, _ out: UnsafeMutableRawPointer?, _ capacity: Int32, _ timeout_milliseconds: Int32
) -> Int32
@_extern(c) func larkspur_eventfd() -> Int32
@_extern(c) func larkspur_timerfd() -> Int32
@_extern(c) func larkspur_timerfd_set(_ descriptor: Int32, _ nanoseconds: UInt64) -> Int32
@_extern(c) func larkspur_socket(_ family: Int32, _ type: Int32) -> Int32
@_extern(c) func larkspur_multipath_socket(_ family: Int32) -> Int32
@_extern(c) func larkspur_is_multipath(_ descriptor: Int32) -> Int32
@_extern(c) func larkspur_send(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int
@_extern(c) func larkspur_receive(_ descriptor: Int32, _ buffer: UnsafeMutableRawPointer?, _ capacity: Int) -> Int
@_extern(c) func larkspur_send_gathered(_ descriptor: Int32, _ list: UnsafeMutableRawPointer?, _ count: Int) -> Int
@_extern(c) func larkspur_processor_count() -> Int32
@_extern(c) func larkspur_sendfile(_ descriptor: Int32, _ file: Int32, _ offset: Int64, _ count: Int) -> Int
@_extern(c) func larkspur_splice(_ source: Int32, _ target: Int32, _ count: Int) -> Int
@_extern(c) func larkspur_pipe(
  _ reading: UnsafeMutablePointer<Int32>?, _ writing: UnsafeMutablePointer<Int32>?
) -> Int32
@_extern(c) func larkspur_blocking_socket(_ family: Int32) -> Int32
@_extern(c) func larkspur_blocking_accept(_ listener: Int32) -> Int32
@_extern(c) func larkspur_set_send_timeout(_ descriptor: Int32, _ milliseconds: Int32) -> Int32
@_extern(c) func larkspur_wait_for_event(_ descriptor: Int32, _ event: Int16, _ timeout_milliseconds: Int32) -> Int32
@_extern(c) func larkspur_watch_removals(_ folder: UnsafePointer<CChar>?) -> Int32
@_extern(c) func larkspur_wait_for_removal(_ watch: Int32, _ name: UnsafePointer<CChar>?) -> Int32
@_extern(c) func larkspur_open_change_watch() -> Int32
@_extern(c) func larkspur_watch_changes(_ watch: Int32, _ folder: UnsafePointer<CChar>?) -> Int32
@_extern(c) func larkspur_semaphore_wait(_ semaphore: UnsafeMutableRawPointer?, _ deadline_nanoseconds: UInt64) -> Int32
@_extern(c) func larkspur_monotonic_nanoseconds() -> UInt64
@_extern(c) func larkspur_seconds_since_boot() -> Double
@_extern(c) func larkspur_wall_seconds() -> Double
@_extern(c) func larkspur_make_adaptive_mutex(_ mutex: UnsafeMutableRawPointer?)
@_extern(c) func larkspur_set_integer_option(
  _ descriptor: Int32, _ level: Int32, _ name: Int32, _ value: Int32
) -> Int32
@_extern(c) func larkspur_bind_to_interface(_ descriptor: Int32, _ name: UnsafePointer<CChar>?) -> Int32
@_extern(c) func larkspur_defer_port(_ descriptor: Int32) -> Int32
@_extern(c) func larkspur_pending_error(_ descriptor: Int32) -> Int32
@_extern(c) func larkspur_linger_zero(_ descriptor: Int32) -> Int32
@_extern(c) func larkspur_catch_ending_signals(_ wake_up_descriptor: Int32)
@_extern(c) func larkspur_interrupt_calls(_ from_nanoseconds: UInt64)
@_extern(c) func larkspur_caught_signal() -> Int32
@_extern(c) func larkspur_open_regular_for_reading(_ path: UnsafePointer<CChar>?) -> Int32
@_extern(c) func larkspur_open_regular_for_updating(_ path: UnsafePointer<CChar>?) -> Int32
@_extern(c) func larkspur_create_nameless_file(_ folder: UnsafePointer<CChar>?) -> Int32
@_extern(c) func larkspur_link_file(_ file: Int32, _ folder: Int32, _ name: UnsafePointer<CChar>?) -> Int32
@_extern(c) func larkspur_open_private_folder(_ path: UnsafePointer<CChar>?, _ create: Int32) -> Int32
@_extern(c) func larkspur_is_named_in_folder(_ folder: Int32, _ name: UnsafePointer<CChar>?, _ file: Int32) -> Int32
@_extern(c) func larkspur_facts_in_folder(
  _ folder: Int32, _ name: UnsafePointer<CChar>?, _ out: UnsafeMutableRawPointer?
) -> Int32
@_extern(c) func larkspur_next_name(_ list: OpaquePointer?) -> UnsafePointer<CChar>?
@_extern(c) func larkspur_list_folder(_ folder: Int32) -> OpaquePointer?
@_extern(c) func larkspur_set_times_in_folder(
  _ folder: Int32, _ name: UnsafePointer<CChar>?, _ used: Double, _ changed: Double
) -> Int32
@_extern(c) func larkspur_mode_of_path(_ path: UnsafePointer<CChar>?) -> Int
@_extern(c) func larkspur_is_guarded(_ path: UnsafePointer<CChar>?) -> Int32
@_extern(c) func larkspur_mode_of_descriptor(_ descriptor: Int32) -> Int
@_extern(c) func larkspur_status_of_descriptor(_ descriptor: Int32, _ result: UnsafeMutableRawPointer?) -> Int32
@_extern(c) func larkspur_terminal_columns(_ descriptor: Int32) -> Int32
@_extern(c) func larkspur_open_netlink(_ groups: UInt32, _ is_blocking: Int32) -> Int32
@_extern(c) func larkspur_receive_netlink(
  _ descriptor: Int32, _ buffer: UnsafeMutableRawPointer?, _ capacity: Int
) -> Int
@_extern(c) func fallocate(_ descriptor: Int32, _ mode: Int32, _ offset: Int64, _ count: Int64) -> Int32
@_extern(c) func larkspur_open_in_folder(
  _ folder: Int32, _ name: UnsafePointer<CChar>?, _ flags: Int32, _ mode: UInt32, _ is_own: Int32
) -> Int32
@_extern(c) func larkspur_cut_file(_ descriptor: Int32, _ size: Int64) -> Int32
@_extern(c) func larkspur_access_in_folder(
  _ folder: Int32, _ name: UnsafePointer<CChar>?, _ access: UnsafeMutableRawPointer?
) -> Int32
@_extern(c) func larkspur_identity_in_folder(
  _ folder: Int32, _ name: UnsafePointer<CChar>?, _ identity: UnsafeMutableRawPointer?
) -> Int32
@_extern(c) func larkspur_move_new(
  _ folder: Int32, _ name: UnsafePointer<CChar>?, _ target: Int32, _ new_name: UnsafePointer<CChar>?
) -> Int32
@_extern(c) func larkspur_exchange(
  _ folder: Int32, _ name: UnsafePointer<CChar>?, _ target: Int32, _ other_name: UnsafePointer<CChar>?
) -> Int32
@_extern(c) func larkspur_set_modification_time(_ descriptor: Int32, _ seconds: Double) -> Int32
@_extern(c) func larkspur_peer(
  _ descriptor: Int32, _ process: UnsafeMutablePointer<Int32>?, _ user: UnsafeMutablePointer<UInt32>?
) -> Int32
@_extern(c) func larkspur_environment() -> UnsafePointer<UnsafeMutablePointer<CChar>?>?
@_extern(c) func larkspur_environment_value(_ name: UnsafePointer<CChar>?) -> UnsafePointer<CChar>?
@_extern(c) func larkspur_is_privileged() -> Int32
@_extern(c) func larkspur_start_detached(
  _ path: UnsafePointer<CChar>?, _ arguments: UnsafePointer<UnsafeMutablePointer<CChar>?>?,
  _ environment:
    UnsafePointer<UnsafeMutablePointer<CChar>?>?, _ life: UnsafeMutablePointer<Int32>?
) -> Int32
@_extern(c) func larkspur_raise_descriptor_limit(_ count: UInt64) -> Int32
@_extern(c) func larkspur_duplicate(_ descriptor: Int32) -> Int32
