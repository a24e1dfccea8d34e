import Foundation

#if FOUNDATION_NETWORKING
  import FoundationNetworking
#else
  import Larkspur
#endif

extension UserReports {
  static let files = [
    Scenario(name: "temporary-files", title: "a thousand downloads leave no file and no descriptor") { site in
      let session = URLSession(configuration: .ephemeral)
      let url = try site.url("/bytes/10000")
      let directory = FileManager.default.temporaryDirectory.path
      var before = 0
      for number in 0..<1_000 {
        let count: Int? = await withCheckedContinuation { continuation in
          session.downloadTask(with: url) { location, _, _ in
            continuation.resume(returning: location.flatMap { try? Data(contentsOf: $0).count })
          }.resume()
        }
        try expect(count == 10_000, "download \(number): \(String(describing: count))")
        if number == 10 { before = Footprint.descriptors }
      }
      let descriptors = Footprint.descriptors
      try expect(descriptors < before + 10, "descriptors: \(before), then \(descriptors)")
      // One file may be left: the last handler has only just returned.
      let left = try FileManager.default.contentsOfDirectory(atPath: directory)
      try expect(left.count <= 1, "\(left.count) files are left in the temporary directory")
    },
    Scenario(name: "cancelled-downloads", title: "downloads that are cancelled leave no file") { site in
      let listener = Listener()
      let session = URLSession(configuration: .ephemeral, delegate: listener, delegateQueue: nil)
      for number in 0..<50 {
        let task = session.downloadTask(with: try site.url("/drip?bytes=1000000&pieces=1000&interval=10"))
        listener.follow(task)
        task.resume()
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(number * 4)) { task.cancel() }
      }
      session.finishTasksAndInvalidate()
      await listener.ended.wait()
      await listener.invalidated.wait()
      let left = try FileManager.default.contentsOfDirectory(atPath: FileManager.default.temporaryDirectory.path)
      try expect(left.isEmpty, "left in the temporary directory: \(left)")
    },
    Scenario(name: "disk-full", title: "a download that cannot be written fails, and leaves nothing") { site in
      // The kernel refuses to let a file grow beyond the limit, as on a full disk.
      _ = signal(SIGXFSZ, SIG_IGN)
      var limit = rlimit(rlim_cur: 100_000, rlim_max: 100_000)
      try expect(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0, "no limit could be set")
      let session = URLSession(configuration: .ephemeral)
      let url = try site.url("/range/1000000")
      let error: URLError? = await withCheckedContinuation { continuation in
        session.downloadTask(with: url) { _, _, error in continuation.resume(returning: error as? URLError) }.resume()
      }
      try expect(error?.code == .cannotWriteToFile, "\(String(describing: error))")
      _ = await session.load(try site.request("/get"))
      let left = try FileManager.default.contentsOfDirectory(atPath: FileManager.default.temporaryDirectory.path)
      try expect(left.isEmpty, "left in the temporary directory: \(left)")
    },
    Scenario(name: "resume-data", title: "a download that breaks off goes on where it stopped") { site in
      let session = URLSession(configuration: .ephemeral)
      let url = try site.url("/breaks-once")
      let data: Data? = await withCheckedContinuation { continuation in
        session.downloadTask(with: url) { _, _, error in
          let error = error as? URLError
          continuation.resume(returning: error?.userInfo["NSURLSessionDownloadTaskResumeData"] as? Data)
        }.resume()
      }
      guard let data else { throw Complaint("the error has no resume data") }
      let (status, count): (Int?, Int?) = await withCheckedContinuation { continuation in
        session.downloadTask(withResumeData: data) { location, response, _ in
          let count = location.flatMap { try? Data(contentsOf: $0).count }
          continuation.resume(returning: ((response as? HTTPURLResponse)?.statusCode, count))
        }.resume()
      }
      try expect(status == 206 && count == 300_000, "\(String(describing: status)), \(String(describing: count)) bytes")
    },
    Scenario(name: "foreign-resume-data", title: "nonsense in place of resume data fails the task") { site in
      let session = URLSession(configuration: .ephemeral)
      let error: URLError? = await withCheckedContinuation { continuation in
        session.downloadTask(withResumeData: Data("nonsense".utf8)) { _, _, error in
          continuation.resume(returning: error as? URLError)
        }.resume()
      }
      try expect(error?.code == .unsupportedURL, "\(String(describing: error))")
    },
  ]

  static let loads = [
    Scenario(name: "sixteen-sessions", title: "sixteen sessions at once serve sixteen callers each") { site in
      let request = try site.request("/bytes/10000")
      let failures = try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<16 {
          group.addTask {
            let session = URLSession(configuration: .ephemeral)
            return await withTaskGroup(of: Int.self) { callers in
              for _ in 0..<16 {
                callers.addTask {
                  var failures = 0
                  for _ in 0..<20 where await session.load(request).data?.count != 10_000 { failures += 1 }
                  return failures
                }
              }
              return await callers.reduce(0, +)
            }
          }
        }
        return try await group.reduce(0, +)
      }
      try expect(failures == 0, "\(failures) of 5120 requests failed")
    },
    Scenario(name: "memory", title: "a body with a completion handler is in memory once") { site in
      // 2 GiB unless the environment says otherwise.
      let environment = ProcessInfo.processInfo.environment
      let count = environment["USER_REPORTS_BYTES"].flatMap { Int($0) } ?? 2 << 30
      let loaded = await URLSession(configuration: .ephemeral).load(try site.request("/bytes/\(count)"))
      try expect(loaded.data?.count == count, "\(String(describing: loaded.data?.count)), \(loaded.error as Any)")
      let peak = Footprint.peakBytes
      // The bound includes what the program takes without a body.
      try expect(peak < count + count / 10 + 64 << 20, "\(count >> 20) MiB took \(peak >> 20) MiB")
    },
  ]
}
