import Glibc
import LarkspurBytes

/// The Linux kernel, called directly.
public final class LinuxKernel: Kernel {
  public static let shared = LinuxKernel()

  /// Maximum number of segments in one gathered write.
  private static let segmentsMax = 16

  public func now() -> Deadline { Deadline(nanoseconds: larkspur_monotonic_nanoseconds()) }

  public func date() -> Int64 { Int64(time(nil)) }

  public func openSocket(for address: SocketAddress) -> Int32 {
    result(larkspur_socket(address.familyNumber, SOCK_STREAM))
  }

  public func openMultipathSocket(for address: SocketAddress) -> Int32 {
    let multipath = larkspur_multipath_socket(address.familyNumber)
    return multipath >= 0 ? multipath : openSocket(for: address)
  }

  public func isMultipath(_ descriptor: Int32) -> Bool { larkspur_is_multipath(descriptor) != 0 }

  public func bind(_ descriptor: Int32, to address: SocketAddress) -> Int32 {
    do throws(Errno) {
      // Safe: the address is lent for the call.
      return try unsafe address.withSockAddr { unsafe result(Glibc.bind(descriptor, $0, $1)) }
    } catch {
      return -error.rawValue
    }
  }

  public func deferPort(_ descriptor: Int32) {
    // A failure costs local ports, nothing else.
    _ = larkspur_defer_port(descriptor)
  }

  public func bind(_ descriptor: Int32, toInterface name: String) -> Int32 {
    // Safe: the name is lent for the call, with a NUL at its end.
    unsafe result(larkspur_bind_to_interface(descriptor, name))
  }

  public func interfaceIndex(of name: String) -> Int32 {
    // Safe: the name is lent for the call, with a NUL at its end.
    let index = unsafe if_nametoindex(name)
    return index == 0 ? result(-1) : Int32(clamping: index)
  }

  public func connect(_ descriptor: Int32, to address: SocketAddress) -> Int32 {
    do throws(Errno) {
      // Safe: the address is lent for the call.
      return try unsafe address.withSockAddr { unsafe result(Glibc.connect(descriptor, $0, $1)) }
    } catch {
      return -error.rawValue
    }
  }

  public func localAddress(_ descriptor: Int32) -> SocketAddress? {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    // Safe: `length` is the size of the storage, and every address begins like sockaddr.
    return unsafe withUnsafeMutablePointer(to: &storage) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        unsafe getsockname(descriptor, address, &length) == 0 ? unsafe SocketAddress(address) : nil
      }
    }
  }

  public func pendingError(_ descriptor: Int32) -> Int32 { larkspur_pending_error(descriptor) }

  public func setNoDelay(_ descriptor: Int32) {
    // A failure costs latency, nothing else.
    _ = larkspur_set_integer_option(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
  }

  public func setUnsentBytesMax(_ descriptor: Int32, _ count: Int32) {
    // Only TCP has this option. Without it the kernel buffers more, nothing else.
    _ = larkspur_set_integer_option(descriptor, Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, count)
  }

  public func shutDownSending(_ descriptor: Int32) {
    // Fails only if the connection is gone, which the next receive reports.
    _ = shutdown(descriptor, Int32(SHUT_WR))
  }

  public func setTrafficClass(_ descriptor: Int32, _ trafficClass: UInt8) {
    // Each option applies to one address family and fails for the other. A failure has no effect beyond the missing
    // mark.
    _ = larkspur_set_integer_option(descriptor, Int32(IPPROTO_IP), IP_TOS, Int32(trafficClass))
    _ = larkspur_set_integer_option(descriptor, Int32(IPPROTO_IPV6), IPV6_TCLASS, Int32(trafficClass))
  }

  public func receive(_ descriptor: Int32, into buffer: inout OutputRawSpan) -> Int {
    var received = 0
    unsafe buffer.withUnsafeMutableBytes { bytes, count in
      guard let base = bytes.baseAddress else { return }
      // Safe: the room behind the `count` initialized bytes belongs to the span.
      received = unsafe larkspur_receive(descriptor, base + count, bytes.count - count)
      if received > 0 { count += received }
    }
    return result(received)
  }

  public func send(_ descriptor: Int32, from queue: borrowing ByteQueue, atMost count: Int) -> Int {
    var sent = 0
    unsafe queue.withSegments(atMost: Self.segmentsMax, bytes: count) { segments in
      // Safe: the segments are lent until this closure returns, and the kernel only reads them.
      if segments.count == 1 {
        sent = unsafe larkspur_send(descriptor, segments[0].baseAddress, segments[0].count)
        return
      }
      unsafe withUnsafeTemporaryAllocation(of: iovec.self, capacity: segments.count) { list in
        for index in segments.indices {
          let base = unsafe UnsafeMutableRawPointer(mutating: segments[index].baseAddress)
          unsafe list.initializeElement(at: index, to: iovec(iov_base: base, iov_len: segments[index].count))
        }
        sent = unsafe larkspur_send_gathered(descriptor, list.baseAddress, list.count)
      }
    }
    return result(sent)
  }

  public func send(_ descriptor: Int32, _ bytes: Span<UInt8>) -> Int {
    // Safe: the bytes are lent for the call.
    unsafe bytes.withUnsafeBytes { unsafe result(larkspur_send(descriptor, $0.baseAddress, $0.count)) }
  }

  public func close(_ descriptor: Int32) {
    // Linux releases the descriptor even when it reports EINTR: never close twice.
    _ = Glibc.close(descriptor)
  }

  public func openPoller() -> Int32 { result(larkspur_epoll_create()) }

  public func watch(_ poller: Int32, _ descriptor: Int32, slot: UInt32, registration: UInt32) -> Int32 {
    let events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET
    return result(larkspur_epoll_add(poller, descriptor, events, slot, registration))
  }

  public func wait(_ poller: Int32, into events: inout EventBuffer, milliseconds: Int32) -> Int32 {
    unsafe events.fill { list in
      guard let base = list.baseAddress else { return 0 }
      // Safe: the kernel writes at most as many events as the list holds.
      return unsafe result(larkspur_epoll_wait(poller, base, Int32(list.count), milliseconds))
    }
  }

  public func openWakeUp() -> Int32 { result(larkspur_eventfd()) }

  public func wake(_ descriptor: Int32) {
    var one: UInt64 = 1
    // The counter is never read. At a billion writes a second it overflows after more than five centuries.
    _ = unsafe write(descriptor, &one, MemoryLayout<UInt64>.size)
  }

  public func openTimer() -> Int32 { result(larkspur_timerfd()) }

  // The call fails only for a descriptor that is not a timer.
  public func setTimer(_ descriptor: Int32, to moment: Deadline) {
    _ = larkspur_timerfd_set(descriptor, moment.nanoseconds)
  }
}

// MARK: - Files

extension LinuxKernel {
  public func fileStatus(_ file: Int32, _ status: inout FileStatus) -> Int {
    var facts = larkspur_file_status()
    // Safe: the call writes the structure, which lives until the call returns.
    let outcome = result(Int(unsafe larkspur_status_of_descriptor(file, &facts)))
    status = FileStatus(
      size: Int(facts.size), modificationSeconds: facts.modification_seconds,
      modificationNanoseconds: facts.modification_nanoseconds, inode: facts.inode)
    return outcome
  }

  public func sendFile(_ file: Int32, at offset: Int, count: Int, to descriptor: Int32) -> Int {
    result(larkspur_sendfile(descriptor, file, Int64(offset), max(count, 0)))
  }

  public func readFile(_ file: Int32, at offset: Int?, into buffer: inout OutputRawSpan) -> Int {
    var got = 0
    // Safe: the room behind the `count` initialized bytes belongs to the span, and the kernel writes nowhere else.
    unsafe buffer.withUnsafeMutableBytes { bytes, count in
      guard let base = bytes.baseAddress else { return }
      got =
        if let offset {
          unsafe pread(file, base + count, bytes.count - count, offset)
        } else {
          unsafe Glibc.read(file, base + count, bytes.count - count)
        }
      if got > 0 { count += got }
    }
    return result(got)
  }

  public func writeFile(_ file: Int32, _ bytes: Span<UInt8>) -> Int {
    // Safe: the bytes are lent for the call.
    unsafe bytes.withUnsafeBytes { unsafe result(Glibc.write(file, $0.baseAddress, $0.count)) }
  }

  public func openPipe() -> (reading: Int32, writing: Int32) {
    var (reading, writing): (Int32, Int32) = (0, 0)
    // Safe: the call writes one number to each variable.
    guard unsafe larkspur_pipe(&reading, &writing) == 0 else {
      let error = -errno
      return (error, error)
    }
    return (reading, writing)
  }

  public func splice(from source: Int32, to target: Int32, count: Int) -> Int {
    result(larkspur_splice(source, target, max(count, 0)))
  }

  fileprivate func result<T: FixedWidthInteger>(_ value: T) -> T {
    value < 0 ? T(truncatingIfNeeded: -errno) : value
  }
}
