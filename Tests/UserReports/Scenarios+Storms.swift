import Foundation

#if FOUNDATION_NETWORKING
  import FoundationNetworking
#else
  import Larkspur
#endif

extension UserReports {
  static let storms = [
    Scenario(name: "cancel-storm", title: "tasks cancelled at every point end once each; their delegates are let go") {
      site in
      let released = DispatchGroup()
      for round in 0..<20 { try await stormRound(round, site, released) }
      await released.wait()
    },
    Scenario(name: "teardown-storm", title: "sessions invalidated at every point end all their tasks") { site in
      let released = DispatchGroup()
      for round in 0..<60 { try await teardownRound(round, site, released) }
      await released.wait()
    },
    Scenario(name: "session-per-request", title: "a thousand sessions leave no descriptors and no threads") { site in
      let request = try site.request("/get")
      var before = (descriptors: 0, threads: 0)
      for number in 0..<1_000 {
        let session = URLSession(configuration: .ephemeral, delegate: Listener(), delegateQueue: nil)
        let loaded = await session.load(request)
        try expect(loaded.status == 200, "request \(number): \(loaded)")
        session.finishTasksAndInvalidate()
        if number == 100 { before = (Footprint.descriptors, Footprint.threads) }
      }
      let (descriptors, threads) = (Footprint.descriptors, Footprint.threads)
      try expect(descriptors < before.descriptors + 50, "descriptors: \(before.descriptors), then \(descriptors)")
      try expect(threads < before.threads + 50, "threads: \(before.threads), then \(threads)")
    },
    Scenario(name: "invalidated-session", title: "a task on an invalidated session fails, and nothing crashes") {
      site in
      let listener = Listener()
      let session = URLSession(configuration: .ephemeral, delegate: listener, delegateQueue: nil)
      session.invalidateAndCancel()
      let loaded = await session.load(try site.request("/get"))
      try expect(loaded.error?.code == .cancelled, "\(loaded)")
    },
    Scenario(name: "delegate-after-resume", title: "a delegate that is set when the task runs hears of its end") {
      site in
      let listener = Listener()
      let task = URLSession(configuration: .ephemeral).dataTask(with: try site.url("/delay/200"))
      listener.follow(task)
      task.resume()
      task.delegate = listener
      await listener.ended.wait()
      try expect(listener.error == nil, "\(String(describing: listener.error))")
    },
  ]

  static let breaks = [
    Scenario(name: "post-without-a-response", title: "a POST on a connection that ends unanswered fails") { site in
      let session = URLSession(configuration: .ephemeral)
      for _ in 0..<10 {
        _ = await session.load(try site.request("/get"))
        var request = try site.request("/post", method: "POST")
        request.httpBody = Data(count: 1_000)
        let loaded = await session.load(request)
        try expect(loaded.error?.code == .networkConnectionLost, "\(loaded)")
      }
    },
    Scenario(name: "cut-head", title: "a head that is cut off behind the status line is an error") { site in
      let loaded = await URLSession(configuration: .ephemeral).load(try site.request("/get"))
      try expect(loaded.error != nil, "\(loaded)")
    },
    Scenario(name: "longest-length", title: "the largest Content-Length that there is, and a byte, is an error") {
      site in
      let loaded = await URLSession(configuration: .ephemeral).load(try site.request("/get"))
      try expect(loaded.error != nil, "\(loaded)")
    },
    Scenario(name: "suspend-storm", title: "tasks that are suspended and resumed at any time lose nothing") { site in
      let listener = Listener()
      let session = URLSession(configuration: .ephemeral, delegate: listener, delegateQueue: nil)
      let count = 200_000
      let tasks = try (0..<100).map { _ in session.dataTask(with: try site.url("/bytes/\(count)")) }
      for task in tasks {
        listener.follow(task)
        task.resume()
        DispatchQueue.global().async {
          for _ in 0..<Int.random(in: 1...5) {
            for _ in 0..<Int.random(in: 0...500) { sched_yield() }
            task.suspend()
            for _ in 0..<Int.random(in: 0...500) { sched_yield() }
            task.resume()
          }
        }
      }
      await listener.ended.wait()
      try expect(listener.doubleCompletions == 0, "\(listener.doubleCompletions) tasks ended twice")
      let expected = tasks.count * count
      try expect(listener.byteCount == expected, "\(listener.byteCount) bytes in place of \(expected)")
    },
  ]

  private static func stormRound(_ round: Int, _ site: TestSite, _ released: DispatchGroup) async throws {
    let listener = Listener(released: released)
    if round % 3 == 0 { listener.onResponse = { if $0.taskIdentifier % 2 == 0 { $0.cancel() } } }
    if round % 3 == 1 { listener.onData = { if $0.taskIdentifier % 2 == 0 { $0.cancel() } } }
    let session = URLSession(configuration: .ephemeral, delegate: listener, delegateQueue: nil)
    let url = try site.url("/bytes/200000")
    for number in 0..<25 {
      let task = session.dataTask(with: url)
      listener.follow(task)
      if number % 5 == 1 { task.cancel() }
      task.resume()
      if number % 5 == 2 { task.cancel() }
      if number % 5 == 3 { DispatchQueue.global().async { task.cancel() } }
    }
    session.finishTasksAndInvalidate()
    await listener.ended.wait()
    await listener.invalidated.wait()
    try expect(listener.doubleCompletions == 0, "\(listener.doubleCompletions) tasks ended twice")
    try expect(listener.lateCalls == 0, "\(listener.lateCalls) calls after the end")
  }

  private static func teardownRound(_ round: Int, _ site: TestSite, _ released: DispatchGroup) async throws {
    let listener = Listener(released: released)
    let session = URLSession(configuration: .ephemeral, delegate: listener, delegateQueue: nil)
    let url = try site.url("/chunked/300000")
    if round % 4 == 1 { listener.onResponse = { [weak session] _ in session?.invalidateAndCancel() } }
    if round % 4 == 2 { listener.onData = { [weak session] _ in session?.invalidateAndCancel() } }
    // All tasks exist before the first one can invalidate the session.
    let tasks = (0..<8).map { _ in session.dataTask(with: url) }
    for task in tasks { listener.follow(task) }
    for task in tasks { task.resume() }
    if round % 4 == 0 { session.invalidateAndCancel() }
    if round % 4 == 3 { DispatchQueue.global().async { session.invalidateAndCancel() } }
    await listener.ended.wait()
    await listener.invalidated.wait()
    try expect(listener.doubleCompletions == 0, "\(listener.doubleCompletions) tasks ended twice")
  }
}
