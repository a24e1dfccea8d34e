import Foundation

#if FOUNDATION_NETWORKING
  import FoundationNetworking
#else
  import Larkspur
#endif

extension UserReports {
  static let loading = [
    Scenario(name: "relative-location", title: "a relative Location is resolved against the request's URL") { site in
      let target = "/redirect-to?url=..%2Fanything%2Fhere%3Fx%3D1"
      let loaded = await URLSession(configuration: .ephemeral).load(try site.request(target))
      try expect(loaded.status == 200, "\(loaded)")
      let echo = try echo(loaded)
      try expect(echo["target"] as? String == "/anything/here?x=1", "\(echo)")
    },
    Scenario(name: "many-redirects", title: "a loop of redirects ends with an error") { site in
      let loaded = await URLSession(configuration: .ephemeral).load(try site.request("/loop"))
      try expect(loaded.error?.code == .httpTooManyRedirects, "\(loaded)")
    },
    Scenario(name: "credentials-across-hosts", title: "Authorization does not go to another host") { site in
      var target = URLComponents(url: site.base, resolvingAgainstBaseURL: false)
      target?.host = "localhost"
      target?.path = "/headers"
      let url = target?.url?.absoluteString.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
      var request = try site.request("/redirect-to?url=\(url)")
      request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
      let loaded = await URLSession(configuration: .ephemeral).load(request)
      try expect(loaded.status == 200, "\(loaded)")
      let text = String(decoding: loaded.data ?? Data(), as: UTF8.self)
      try expect(!text.contains("secret"), "the other host was sent \(text)")
    },
    Scenario(name: "disposition-cancel", title: "a response that is refused ends the task; no data follows") { site in
      let listener = Listener()
      listener.disposition = .cancel
      let session = URLSession(configuration: .ephemeral, delegate: listener, delegateQueue: nil)
      let task = session.dataTask(with: try site.url("/bytes/100000"))
      listener.follow(task)
      task.resume()
      await listener.ended.wait()
      try expect(listener.pieceCount == 0, "\(listener.pieceCount) pieces of data")
      try expect((listener.error as? URLError)?.code == .cancelled, "\(String(describing: listener.error))")
    },
    Scenario(name: "disposition-download", title: "a data task becomes a download") { site in
      let listener = Listener()
      listener.disposition = .becomeDownload
      let session = URLSession(configuration: .ephemeral, delegate: listener, delegateQueue: nil)
      let task = session.dataTask(with: try site.url("/bytes/100000"))
      listener.follow(task)
      task.resume()
      await listener.ended.wait()
      try expect(listener.error == nil, "\(String(describing: listener.error))")
      try expect(listener.fileCount == 1, "\(listener.fileCount) files, \(listener.pieceCount) pieces of data")
    },
    Scenario(name: "metrics", title: "a task's metrics come before its end, with dates in order") { site in
      let listener = Listener()
      let session = URLSession(configuration: .ephemeral, delegate: listener, delegateQueue: nil)
      let task = session.dataTask(with: try site.url("/redirect/1"))
      listener.follow(task)
      task.resume()
      await listener.ended.wait()
      guard let metrics = listener.metrics else { throw Complaint("no metrics") }
      try expect(metrics.redirectCount == 1 && metrics.transactionMetrics.count == 2, "\(metrics)")
      for part in metrics.transactionMetrics {
        let dates = [part.fetchStartDate, part.requestStartDate, part.responseStartDate, part.responseEndDate]
        let known = dates.compactMap { $0 }
        try expect(known.count == dates.count && known == known.sorted(), "\(dates)")
      }
    },
    Scenario(name: "cookie-path-and-secure", title: "Path and Secure of a cookie count") { site in
      let session = URLSession(configuration: .ephemeral)
      _ = await session.load(try site.request("/set-cookies"))
      let echo = try echo(await session.load(try site.request("/headers")))
      let cookie = (echo["headers"] as? [String: Any])?["Cookie"] as? String
      try expect(cookie == "here=1", "sent: \(cookie ?? "none")")
    },
    Scenario(name: "cache-by-query", title: "the cache tells URLs apart by their queries") { site in
      let configuration = URLSessionConfiguration.ephemeral
      configuration.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
      let session = URLSession(configuration: configuration)
      for query in ["x=1", "x=2", "x=1"] {
        let loaded = await session.load(try site.request("/cacheable?\(query)"))
        let text = String(decoding: loaded.data ?? Data(), as: UTF8.self)
        try expect(text == "/cacheable?\(query)", "\(query): \(text)")
      }
    },
    Scenario(name: "cache-is-used", title: "a fresh response is not loaded again") { site in
      let configuration = URLSessionConfiguration.ephemeral
      configuration.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
      let session = URLSession(configuration: configuration)
      let first = await session.load(try site.request("/counted"))
      let second = await session.load(try site.request("/counted"))
      let texts = [first, second].map { String(decoding: $0.data ?? Data(), as: UTF8.self) }
      try expect(texts == ["1", "1"], "\(texts)")
    },
    Scenario(name: "several-sizes", title: "bodies of every framing come whole") { site in
      let session = URLSession(configuration: .ephemeral)
      for path in ["/bytes/0", "/bytes/1", "/bytes/1000000", "/chunked/1000000", "/close-delimited/1000000"] {
        let loaded = await session.load(try site.request(path))
        let count = Int(path.split(separator: "/").last ?? "") ?? -1
        try expect(loaded.data?.count == count, "\(path): \(String(describing: loaded.data?.count))")
      }
    },
    Scenario(name: "truncated-body", title: "a body that is cut short is an error") { site in
      let loaded = await URLSession(configuration: .ephemeral).load(try site.request("/lie/1000"))
      try expect(loaded.error?.code == .networkConnectionLost, "\(loaded)")
    },
  ]

  static let timing = [
    Scenario(name: "resource-timeout", title: "a load that takes longer than its resource may ends") { site in
      let configuration = URLSessionConfiguration.ephemeral
      configuration.timeoutIntervalForResource = 1
      let target = "/drip?bytes=1000&pieces=1000&interval=100"
      let loaded = await URLSession(configuration: configuration).load(try site.request(target))
      try expect(loaded.error?.code == .timedOut, "\(loaded)")
    },
    Scenario(name: "half-second-timeout", title: "a timeout of half a second passes") { site in
      let configuration = URLSessionConfiguration.ephemeral
      configuration.timeoutIntervalForRequest = 0.5
      var request = try site.request("/hang")
      request.timeoutInterval = 0.5
      let loaded = await URLSession(configuration: configuration).load(request)
      try expect(loaded.error?.code == .timedOut, "\(loaded)")
    },
    Scenario(name: "infinite-timeout", title: "an infinite timeout is one that never passes") { site in
      for interval in [Double.infinity, .greatestFiniteMagnitude] {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = interval
        configuration.timeoutIntervalForResource = interval
        var request = try site.request("/delay/100")
        request.timeoutInterval = interval
        let loaded = await URLSession(configuration: configuration).load(request)
        try expect(loaded.status == 200, "\(interval): \(loaded)")
      }
    },
  ]

  /// Returns the server's description of the request.
  static func echo(_ loaded: Loaded) throws -> [String: Any] {
    let object = try JSONSerialization.jsonObject(with: loaded.data ?? Data())
    return object as? [String: Any] ?? [:]
  }
}
