import Foundation

#if FOUNDATION_NETWORKING
  import FoundationNetworking
#else
  import Larkspur
#endif

extension UserReports {
  static let loading = [
    Scenario(name: "relative-location", words: "a relative Location is resolved against the request's URL") { place in
      let target = "/redirect-to?url=..%2Fanything%2Fhere%3Fx%3D1"
      let loaded = await URLSession(configuration: .ephemeral).load(try place.request(target))
      try expect(loaded.status == 200, "\(loaded)")
      let echo = try echo(loaded)
      try expect(echo["target"] as? String == "/anything/here?x=1", "\(echo)")
    },
    Scenario(name: "many-redirects", words: "a loop of redirects ends with an error") { place in
      let loaded = await URLSession(configuration: .ephemeral).load(try place.request("/loop"))
      try expect(loaded.error?.code == .httpTooManyRedirects, "\(loaded)")
    },
    Scenario(name: "credentials-across-hosts", words: "Authorization does not go to another host") { place in
      var target = URLComponents(url: place.base, resolvingAgainstBaseURL: false)
      target?.host = "localhost"
      target?.path = "/headers"
      let url = target?.url?.absoluteString.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
      var request = try place.request("/redirect-to?url=\(url)")
      request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
      let loaded = await URLSession(configuration: .ephemeral).load(request)
      try expect(loaded.status == 200, "\(loaded)")
      let text = String(decoding: loaded.data ?? Data(), as: UTF8.self)
      try expect(!text.contains("secret"), "the other host was sent \(text)")
    },
    Scenario(name: "disposition-cancel", words: "a response that is refused ends the task; no data follows") { place in
      let listener = Listener()
      listener.disposition = .cancel
      let session = URLSession(configuration: .ephemeral, delegate: listener, delegateQueue: nil)
      let task = session.dataTask(with: try place.url("/bytes/100000"))
      listener.follow(task)
      task.resume()
      await listener.ended.wait()
      try expect(listener.pieceCount == 0, "\(listener.pieceCount) pieces of data")
      try expect((listener.error as? URLError)?.code == .cancelled, "\(String(describing: listener.error))")
    },
    Scenario(name: "disposition-download", words: "a data task becomes a download") { place in
      let listener = Listener()
      listener.disposition = .becomeDownload
      let session = URLSession(configuration: .ephemeral, delegate: listener, delegateQueue: nil)
      let task = session.dataTask(with: try place.url("/bytes/100000"))
      listener.follow(task)
      task.resume()
      await listener.ended.wait()
      try expect(listener.error == nil, "\(String(describing: listener.error))")
      try expect(listener.fileCount == 1, "\(listener.fileCount) files, \(listener.pieceCount) pieces of data")
    },
    Scenario(name: "metrics", words: "a task's metrics come before its end, with dates in order") { place in
      let listener = Listener()
      let session = URLSession(configuration: .ephemeral, delegate: listener, delegateQueue: nil)
      let task = session.dataTask(with: try place.url("/redirect/1"))
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
    Scenario(name: "cookie-path-and-secure", words: "Path and Secure of a cookie count") { place in
      let session = URLSession(configuration: .ephemeral)
      _ = await session.load(try place.request("/set-cookies"))
      let echo = try echo(await session.load(try place.request("/headers")))
      let cookie = (echo["headers"] as? [String: Any])?["Cookie"] as? String
      try expect(cookie == "here=1", "sent: \(cookie ?? "none")")
    },
    Scenario(name: "cache-by-query", words: "the cache tells URLs apart by their queries") { place in
      let configuration = URLSessionConfiguration.ephemeral
      configuration.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
      let session = URLSession(configuration: configuration)
      for query in ["x=1", "x=2", "x=1"] {
        let loaded = await session.load(try place.request("/cacheable?\(query)"))
        let text = String(decoding: loaded.data ?? Data(), as: UTF8.self)
        try expect(text == "/cacheable?\(query)", "\(query): \(text)")
      }
    },
    Scenario(name: "cache-is-used", words: "a fresh response is not loaded again") { place in
      let configuration = URLSessionConfiguration.ephemeral
      configuration.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
      let session = URLSession(configuration: configuration)
      let first = await session.load(try place.request("/counted"))
      let second = await session.load(try place.request("/counted"))
      let texts = [first, second].map { String(decoding: $0.data ?? Data(), as: UTF8.self) }
      try expect(texts == ["1", "1"], "\(texts)")
    },
    Scenario(name: "several-sizes", words: "bodies of every framing come whole") { place in
      let session = URLSession(configuration: .ephemeral)
      for path in ["/bytes/0", "/bytes/1", "/bytes/1000000", "/chunked/1000000", "/close-delimited/1000000"] {
        let loaded = await session.load(try place.request(path))
        let count = Int(path.split(separator: "/").last ?? "") ?? -1
        try expect(loaded.data?.count == count, "\(path): \(String(describing: loaded.data?.count))")
      }
    },
    Scenario(name: "truncated-body", words: "a body that is cut short is an error") { place in
      let loaded = await URLSession(configuration: .ephemeral).load(try place.request("/lie/1000"))
      try expect(loaded.error?.code == .networkConnectionLost, "\(loaded)")
    },
  ]

  static let timing = [
    Scenario(name: "resource-timeout", words: "a load that takes longer than its resource may ends") { place in
      let configuration = URLSessionConfiguration.ephemeral
      configuration.timeoutIntervalForResource = 1
      let target = "/drip?bytes=1000&pieces=1000&interval=100"
      let loaded = await URLSession(configuration: configuration).load(try place.request(target))
      try expect(loaded.error?.code == .timedOut, "\(loaded)")
    },
    Scenario(name: "half-second-timeout", words: "a timeout of half a second passes") { place in
      let configuration = URLSessionConfiguration.ephemeral
      configuration.timeoutIntervalForRequest = 0.5
      var request = try place.request("/hang")
      request.timeoutInterval = 0.5
      let loaded = await URLSession(configuration: configuration).load(request)
      try expect(loaded.error?.code == .timedOut, "\(loaded)")
    },
    Scenario(name: "infinite-timeout", words: "an infinite timeout is one that never passes") { place in
      for interval in [Double.infinity, .greatestFiniteMagnitude] {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = interval
        configuration.timeoutIntervalForResource = interval
        var request = try place.request("/delay/100")
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
