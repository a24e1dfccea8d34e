import LarkspurBytes
import LarkspurIO
import Synchronization

/// A program's connection to the transfer service, for one session.
///
/// Two threads belong to a client: one reads and calls the function of `start`, one writes the bytes that the socket
/// does not accept at once. Commands that `send` has passed to the kernel are carried out even if the program is killed
/// right after the call. With the last reference the connection ends, after the commands that still wait.
public final class TransferClient: TransferLink {
  /// The reason for which there is no client.
  enum Failure: Error, Hashable {
    /// Nothing listens at the socket.
    case notRunning
    /// The service ended while it was asked.
    case ended
    /// The answer of the service, or an error that a second attempt meets as well.
    case refused(TransferLinkError)
  }

  /// Maximum size of the commands that wait for a service that does not read, in bytes.
  static let waitingBytesMax = 2 * TransferJournal.bytesMax

  public let records: [TransferRecord]
  private let core: Core

  /// Connects, and asks for the session. Blocks for a few milliseconds, and at most for `timeout`.
  ///
  /// - Parameters:
  ///   - path: The directory of the service's socket: see `TransferLocation.service`.
  ///   - timeout: The time that the service has for its answer, and later for `close`.
  /// - Throws: `inUse` and `unavailable`.
  public convenience init(
    _ session: TransferSession, directory path: String, timeout: Duration = .seconds(5)
  ) throws(TransferLinkError) {
    do throws(Failure) {
      try self.init(
        session, in: path, until: LinuxKernel.shared.now().advanced(by: timeout), closingTimeMax: timeout)
    } catch {
      switch error {
      case .notRunning: throw .unavailable(reason: "no transfer service runs")
      case .ended: throw .unavailable(reason: "the transfer service has ended")
      case .refused(let reason): throw reason
      }
    }
  }

  /// - Parameter closingTimeMax: The time that the service has for `close`: after that the connection is cut.
  init(
    _ session: TransferSession, in path: String, until deadline: Deadline, closingTimeMax: Duration = .seconds(5)
  ) throws(Failure) {
    let frame = try Result { () throws(TransferValueError) in try TransferMessage.open(session).encoded() }
      .mapError { Failure.refused(.unavailable(reason: "\($0)")) }.get()
    let socket = try Self.connect(in: path, until: deadline)
    core = Core(socket, session.identifier, closingTimeMax)
    do throws(Errno) { try core.start() } catch {
      throw .refused(.unavailable(reason: "the program has no thread left: \(error)"))
    }
    core.send(frame)
    guard let result = core.opened(until: deadline) else {
      core.abandon()
      throw .refused(Self.silence)
    }
    do throws(Failure) {
      records = try result.get()
    } catch {
      core.abandon()
      throw error
    }
  }

  deinit { core.close() }

  /// The error for a service that was stopped (SIGSTOP), or hangs.
  static let silence = TransferLinkError.unavailable(reason: "the transfer service does not answer")

  /// Connects to the service's socket, and checks that the service is the user's own.
  static func connect(in path: String, until deadline: Deadline = .never) throws(Failure) -> BlockingSocket {
    do throws(Errno) {
      let address = SocketAddress.unix(path: "\(path)/\(TransferLocation.socket)")
      let socket = try BlockingSocket.connect(to: address, until: deadline)
      guard try socket.peerUser() == ProcessUser.effective else { throw .notPermitted }
      return socket
    } catch .noSuchFile {
      throw .notRunning
    } catch .connectionRefused {
      throw .notRunning
    } catch .timedOut {
      throw .refused(Self.silence)
    } catch {
      throw .refused(.unavailable(reason: "the transfer service cannot be reached: \(error)"))
    }
  }

  public func send(_ command: TransferCommand) {
    do throws(TransferValueError) {
      core.send(try TransferMessage.command(command).encoded())
    } catch {
      switch command {
      // The service does not get this task, so it would never report its end.
      case .create(let record): core.refuse(record, error)
      // A question without an answer would block its task.
      case .answer(let question, let answer) where answer != .cancel: send(.answer(question: question, .cancel))
      default: break
      }
    }
  }

  public func start(_ notify: @escaping @Sendable (TransferNotice) -> Void) { core.start(notify) }

  public func flush(_ completion: @escaping @Sendable (Bool) -> Void) { core.flush(completion) }

  public func close(_ completion: @escaping @Sendable () -> Void) { core.close(completion) }

  // MARK: - The connection

  /// All that the threads use, so that they do not keep the client alive.
  private final class Core: Sendable {
    private struct State {
      /// The frames that wait for the writer's thread.
      var frames: [[UInt8]] = []
      var waitingBytes = 0
      /// Whether the writer's thread is sending a frame.
      var isWriting = false
      var isOver = false
      /// The reason for the end, if this side has ended the connection.
      var reason: String?
      var isClosed = false
      var result: Result<[TransferRecord], Failure>?
      var notify: (@Sendable (TransferNotice) -> Void)?
      /// The functions of `flush` that have not been called, by their numbers.
      var flushes: [UInt64: @Sendable (Bool) -> Void] = [:]
      var lastFlush: UInt64 = 0
      /// The functions of `close` that have not been called.
      var closings: [@Sendable () -> Void] = []
      /// Whether the reader's thread has ended.
      var isAtEnd = false
      /// The notices from before `start`.
      var waiting = SendQueue()
      /// Whether `start` has passed the waiting notices on.
      var isStarted = false
      /// The reason for an end before `start`.
      var lost: String?
    }

    private let socket: BlockingSocket
    private let identifier: String
    private let closingTimeMax: Duration
    private let state = Mutex(State())
    private let isOpened = Latch()
    private let writer: TransferWriter

    init(_ socket: BlockingSocket, _ identifier: String, _ closingTimeMax: Duration) {
      self.socket = socket
      self.identifier = identifier
      self.closingTimeMax = closingTimeMax
      writer = TransferWriter(socket)
    }

    /// Starts both threads, which keep this object alive until they end.
    func start() throws(Errno) {
      try writer.start { [self] in nextFrame() }
      do throws(Errno) {
        try SystemThread(name: "transfers-read") { [self] in read() }.detach()
      } catch {
        writer.stop()
        throw error
      }
    }

    // MARK: Writing

    /// Sends a frame. What the socket does not take at once waits for the writer's thread.
    func send(_ frame: [UInt8]) {
      let isWaiting = state.withLock { state -> Bool in
        guard !state.isOver, !state.isClosed else { return false }
        var rest = frame
        if state.frames.isEmpty, !state.isWriting {
          // An error shows in the reader's thread, which reports it.
          let sent = (try? socket.sendNow(frame.span)) ?? 0
          rest.removeFirst(min(sent, rest.count))
        }
        guard !rest.isEmpty else { return false }
        guard state.waitingBytes + rest.count <= TransferClient.waitingBytesMax else {
          state.isOver = true
          state.reason = "the transfer service takes no more commands"
          socket.shutDown()
          return false
        }
        state.frames.append(rest)
        state.waitingBytes += rest.count
        return true
      }
      if isWaiting { writer.signal() }
    }

    /// Returns the next frame for the writer's thread.
    private func nextFrame() -> [UInt8]? {
      state.withLock { state in
        state.isWriting = !state.frames.isEmpty
        guard state.isWriting else { return nil }
        let frame = state.frames.removeFirst()
        state.waitingBytes -= frame.count
        return frame
      }
    }

    /// Asks the service for an answer once all commands so far are on the disk.
    func flush(_ completion: @escaping @Sendable (Bool) -> Void) {
      let number = state.withLock { state -> UInt64? in
        guard !state.isAtEnd, !state.isOver, !state.isClosed else { return nil }
        state.lastFlush += 1
        state.flushes[state.lastFlush] = completion
        return state.lastFlush
      }
      // A frame of eight bytes is never too large.
      guard let number, let frame = try? TransferMessage.flush(number).encoded() else { return completion(false) }
      send(frame)
    }

    private func flushed(_ number: UInt64) {
      let completions = state.withLock { state in
        let due = state.flushes.filter { $0.key <= number }
        for number in due.keys { state.flushes[number] = nil }
        return due.sorted { $0.key < $1.key }.map(\.value)
      }
      for completion in completions { completion(true) }
    }

    /// Ends the sending side of the connection after the frames that wait. The service releases the session, and then
    /// ends its side.
    func close(_ completion: (@Sendable () -> Void)? = nil) {
      let isAtEnd = state.withLock { state in
        state.isClosed = true
        state.notify = nil
        if !state.isAtEnd, let completion { state.closings.append(completion) }
        return state.isAtEnd
      }
      writer.finish()
      guard let completion else { return }
      if isAtEnd { return completion() }
      let end = LinuxKernel.shared.now().advanced(by: closingTimeMax)
      // Without a thread left, a service that hangs is waited for.
      try? SystemThread(name: "transfers-close") { [self] in
        if !socket.waitForPeerEnd(until: end) { socket.shutDown() }
      }.detach()
    }

    /// Ends the connection at once.
    func abandon() {
      state.withLock { $0.isClosed = true }
      socket.shutDown()
      writer.stop()
    }

    /// Reports a task that cannot be sent as failed.
    func refuse(_ record: TransferRecord, _ error: TransferValueError) {
      var task = TransferTask(record, isNew: false)
      task.apply(.ended(TransferRecord.Failure(domain: "NSURLErrorDomain", code: -1, message: "\(error)")))
      deliver(.changed(task.record))
    }

    // MARK: Reading

    /// Waits for the answer to `open`.
    ///
    /// - Returns: `nil` if there is none until the deadline.
    func opened(until deadline: Deadline) -> Result<[TransferRecord], Failure>? {
      guard isOpened.wait(until: deadline) else { return nil }
      return state.withLock { $0.result }
    }

    func start(_ notify: @escaping @Sendable (TransferNotice) -> Void) {
      while true {
        let next = state.withLock { state -> TransferNotice? in
          guard !state.isClosed else { return nil }
          if let notice = state.waiting.next() { return notice }
          state.notify = notify
          state.isStarted = true
          defer { state.lost = nil }
          return state.lost.map { .lost(reason: $0) }
        }
        guard let next else { return }
        notify(next)
        if case .lost = next { return }
      }
    }

    /// Passes a notice on, or keeps it until `start`. The service bounds the number of questions.
    private func deliver(_ notice: TransferNotice) {
      let notify = state.withLock { state -> (@Sendable (TransferNotice) -> Void)? in
        if !state.isStarted, !state.isClosed { _ = state.waiting.add(notice) }
        return state.notify
      }
      notify?(notice)
    }

    private func read() {
      var reader = TransferReader(socket)
      let result: Result<[TransferRecord], Failure>
      do throws(Failure) {
        result = .success(try readRecords(&reader))
      } catch {
        result = .failure(error)
      }
      state.withLock { $0.result = result }
      isOpened.open()
      guard case .success = result else { return }
      let reason = readNotices(&reader)
      let (notify, lost, flushes, closings) = state.withLock { state in
        state.isOver = true
        state.isAtEnd = true
        state.frames = []
        let (flushes, closings) = (state.flushes.sorted { $0.key < $1.key }.map(\.value), state.closings)
        (state.flushes, state.closings) = ([:], [])
        let lost = state.reason ?? reason
        if !state.isStarted { state.lost = lost }
        return (state.isClosed ? nil : state.notify, lost, flushes, closings)
      }
      writer.stop()
      notify?(.lost(reason: lost))
      for completion in flushes { completion(false) }
      for completion in closings { completion() }
    }

    private func readRecords(_ reader: inout TransferReader) throws(Failure) -> [TransferRecord] {
      var records: [TransferRecord] = []
      while true {
        let message = Result { () throws(TransferChannelError) in try reader.next() }
          .mapError { Failure.refused(.unavailable(reason: "the transfer service: \($0)")) }
        switch try message.get() {
        case nil: throw .ended
        case .refused(let error): throw .refused(error)
        case .records(let more) where more.allSatisfy({ $0.session == identifier }):
          guard records.count + more.count <= TransferSession.tasksMax else {
            throw .refused(.unavailable(reason: "the transfer service tells of too many tasks"))
          }
          records += more
        case .opened: return records
        default: throw .refused(.unavailable(reason: "the transfer service answers something else"))
        }
      }
    }

    /// Passes all notices on.
    ///
    /// - Returns: The reason for the end.
    private func readNotices(_ reader: inout TransferReader) -> String {
      while true {
        do throws(TransferChannelError) {
          switch try reader.next() {
          case nil: return "the transfer service has ended"
          case .notice(let notice): deliver(notice)
          case .flushed(let number): flushed(number)
          default:
            socket.shutDown()
            return "the transfer service tells something else than notices"
          }
        } catch {
          socket.shutDown()
          return "the transfer service is lost: \(error)"
        }
      }
    }
  }
}
