// Session behavior that can only be observed in a process of its own: how much memory it takes, which servers it
// contacts in another environment, and what it leaves on the disk when it is killed.
//
//   TestHelper session get URL             prints the status and the content
//   TestHelper session discard URL         loads with a delegate that drops every piece
//   TestHelper session collect URL         loads the content into one `Data`
//   TestHelper session broken URL          downloads, and prints the resume data of the download that broke off (Base64)
//   TestHelper session pieces URL FILE     downloads over one connection to FILE, and prints "kept" when a killed process
//                                          would keep 490,000 bytes
//   TestHelper session upload URL FILE POINT
//                                          uploads FILE, writes the upload's first point to POINT, and is killed then
//   TestHelper session afterwards URL      loads, loads again while the process exits, and prints both statuses
//   TestHelper session roots URL FILE      loads with two sessions, moves FILE to the path in SSL_CERT_FILE, and loads
//                                          with both again: prints a status or an error code for each load
//   TestHelper session status URL          loads, and prints the status, or the error's code and description
//   TestHelper session short HOST FILE     verifies the chain in FILE without a free descriptor, and again with some:
//                                          prints the descriptions of both results
//   TestHelper session store URL FOLDER    loads URL/0, URL/1, ... with a cache on disk in FOLDER, and prints every
//                                          eighth number once all up to it are on the disk
//
// `discard` and `collect` print the number of bytes and the growth of the peak resident memory since just before the
// load, in KiB.

import Foundation
import Larkspur
import LarkspurHTTP
import Synchronization

private func url(_ text: String) throws -> URL {
  guard let url = URL(string: text) else { throw Failure.wrongArguments }
  return url
}

/// Resets the process's peak resident size to the present one (proc(5), clear_refs).
private func forgetPeak() { try? Data("5".utf8).write(to: URL(filePath: "/proc/self/clear_refs")) }

private final class Discarding: NSObject, URLSessionDataDelegate {
  let count = Atomic(0)
  let (ends, end) = AsyncStream<(any Error)?>.makeStream()

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    count.add(data.count, ordering: .relaxed)
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    end.yield(error)
    end.finish()
  }
}

/// A delegate that trusts every server.
private final class Trusting: NSObject, URLSessionDelegate {
  func urlSession(
    _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) { completionHandler(.useCredential, challenge.protectionSpace.serverTrust.map { URLCredential(trust: $0) }) }
}

/// Loads with a session and a connection of its own. Blocks until the load ends.
///
/// - Returns: The status, or 0 if the load failed.
private func load(_ url: URL) -> Int {
  let isOver = DispatchSemaphore(value: 0)
  let status = Atomic(0)
  let session = URLSession(configuration: .ephemeral, delegate: Trusting(), delegateQueue: nil)
  session.dataTask(with: url) { _, response, _ in
    status.store((response as? HTTPURLResponse)?.statusCode ?? 0, ordering: .relaxed)
    isOver.signal()
  }.resume()
  isOver.wait()
  return status.load(ordering: .relaxed)
}

private func report(_ count: Int, from start: Int) { say("\(count) \(statusKiB("VmHWM") - start)") }

func runSessionScenario(_ arguments: [String]) async throws {
  guard arguments.count >= 2 else { throw Failure.wrongArguments }
  let configuration = URLSessionConfiguration.ephemeral
  configuration.urlCache = nil

  switch arguments[0] {
  case "get":
    let (data, response) = try await URLSession(configuration: configuration).data(from: url(arguments[1]))
    say("\((response as? HTTPURLResponse)?.statusCode ?? 0) \(String(decoding: data, as: UTF8.self))")
  case "discard":
    let delegate = Discarding()
    let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    let start = statusKiB("VmRSS")
    forgetPeak()
    try session.dataTask(with: url(arguments[1])).resume()
    for await error in delegate.ends where error != nil { throw Failure("the load failed") }
    report(delegate.count.load(ordering: .relaxed), from: start)
  case "collect":
    let session = URLSession(configuration: configuration)
    let start = statusKiB("VmRSS")
    forgetPeak()
    let (data, _) = try await session.data(from: url(arguments[1]))
    report(data.count, from: start)
  case "broken":
    do {
      _ = try await URLSession(configuration: configuration).download(from: url(arguments[1]))
      throw Failure("the download did not break off")
    } catch let error as URLError {
      say(error.downloadTaskResumeData?.base64EncodedString() ?? "")
    }
  case "pieces":
    guard arguments.count == 3 else { throw Failure.wrongArguments }
    var plan = DownloadPlan(arguments[1], to: arguments[2])
    plan.connections = 1
    plan.smallestPiece = 10_000
    let download = URLSession(configuration: configuration).download(plan)
    for await state in download.states where state.kept >= 490_000 { say("kept") }
    _ = try await download.value
  case "upload":
    guard arguments.count == 4 else { throw Failure.wrongArguments }
    var request = URLRequest(url: try url(arguments[1]))
    request.httpMethod = "POST"
    let (file, point) = (URL(filePath: arguments[2]), URL(filePath: arguments[3]))
    let session = URLSession(configuration: configuration)
    await withCheckedContinuation { continuation in
      let task = session.uploadTask(with: request, fromFile: file) { _, _, _ in continuation.resume() }
      task.uploadPointHandler = { data in
        guard let bytes = data?.encoded(), (try? Data(bytes).write(to: point)) != nil else { return }
        kill(getpid(), SIGKILL)
      }
      task.resume()
    }
    throw Failure("the server has not named an upload resource")
  case "afterwards":
    // Exit handlers run in reverse order: this one, registered first, runs after all that the first load may register.
    atexit { say("\((try? url(CommandLine.arguments[3])).map(load) ?? 0)") }
    say("\(try load(url(arguments[1])))")
    exit(0)
  case "roots":
    guard arguments.count == 3, let place = ProcessInfo.processInfo.environment["SSL_CERT_FILE"] else {
      throw Failure.wrongArguments
    }
    let shared = URLSession(configuration: configuration)
    configuration.tlsTrustSettings.roots = .systemAnd([])
    let sessions = [shared, URLSession(configuration: configuration)]
    for round in 0..<2 {
      if round == 1 { guard rename(arguments[2], place) == 0 else { throw Failure("no roots at \(arguments[2])") } }
      for session in sessions {
        do {
          say("\((try await session.data(from: url(arguments[1])).1 as? HTTPURLResponse)?.statusCode ?? 0)")
        } catch {
          say("\((error as? URLError)?.errorCode ?? 0)")
        }
      }
    }
  case "status":
    do {
      say(
        "\((try await URLSession(configuration: configuration).data(from: url(arguments[1])).1 as? HTTPURLResponse)?.statusCode ?? 0)"
      )
    } catch {
      say("\((error as? URLError)?.errorCode ?? 0) \(error.localizedDescription)")
    }
  case "short":
    guard arguments.count == 3, let data = FileManager.default.contents(atPath: arguments[2]),
      let chain = TLSCertificate.read(data)
    else { throw Failure.wrongArguments }
    // The dispatch library opens its descriptors with the first timer, and ends a process in which it cannot.
    await withCheckedContinuation { continuation in
      DispatchQueue.global().asyncAfter(deadline: .now()) { continuation.resume() }
    }
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { throw Failure("no limit") }
    let usual = limit.rlim_cur
    limit.rlim_cur = 0
    guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { throw Failure("no limit") }
    let trust = try ServerTrust(host: arguments[1], chain: chain, roots: .system)
    limit.rlim_cur = usual
    guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { throw Failure("no limit") }
    say(trust.result.message)
    say(try trust.evaluate(host: arguments[1]).result.message)
  case "store":
    guard arguments.count == 3 else { throw Failure.wrongArguments }
    let cache = URLCache(memoryCapacity: 0, diskCapacity: 1 << 30, directory: URL(filePath: arguments[2]))
    configuration.urlCache = cache
    let session = URLSession(configuration: configuration)
    for number in 0..<1_000_000 {
      _ = try await session.data(from: url("\(arguments[1])/\(number)"))
      guard number % 8 == 7 else { continue }
      // `currentDiskUsage` waits for the writes to the disk.
      _ = cache.currentDiskUsage
      say("\(number)")
    }
  default: throw Failure.wrongArguments
  }
}
