import AFNetworking
import AFNetworkingXML
import Foundation
import Testing

/// Code as programs for Apple's systems have it, with the names that the importer gives to AFNetworking's headers. Most
/// of the test is that it compiles.
@Suite struct SpellingTests {
  @Test func responseSerializers() throws {
    let json = AFJSONResponseSerializer()
    json.acceptableContentTypes = NSSet(objects: "application/json", "text/html") as? Set<String>
    json.acceptableContentTypes?.insert("text/plain")
    json.acceptableStatusCodes = IndexSet(integersIn: 200...299)
    json.removesKeysWithNullValues = true
    json.readingOptions = .allowFragments
    let options = AFJSONResponseSerializer(readingOptions: JSONSerialization.ReadingOptions.mutableContainers)
    let plist = AFPropertyListResponseSerializer(format: .xml, readOptions: [])
    let image = AFImageResponseSerializer()
    image.automaticallyInflatesResponseImage = false
    image.stringEncoding = String.Encoding.utf8.rawValue
    let compound = AFCompoundResponseSerializer.compoundSerializer(withResponseSerializers: [json, image, plist])
    let serializers: [any AFHTTPResponseSerializer & AFURLResponseSerialization] = [
      json, options, plist, image, compound, AFHTTPResponseSerializer(), AFXMLParserResponseSerializer(),
      AFXMLDocumentResponseSerializer(xmlDocumentOptions: 0),
    ]
    let response = try Responses.make(500, type: "text/plain")
    for serializer in serializers {
      var error: NSError?
      _ = serializer.responseObject(for: response, data: "null".data(using: .utf8), error: &error)
      #expect(error?.domain == AFURLResponseSerializationErrorDomain)
      #expect(throws: (any Error).self) { try serializer.validate(response, data: "x".data(using: .utf8)) }
    }
    var error: NSError?
    _ = json.responseObject(for: response, data: nil, error: nil)
    _ = json.responseObject(for: response, data: Data("{}".utf8), error: &error)
    let data = error?.userInfo[AFNetworkingOperationFailingURLResponseDataErrorKey] as? Data
    let failed = error?.userInfo[AFNetworkingOperationFailingURLResponseErrorKey] as? HTTPURLResponse
    #expect(data == Data("{}".utf8) && failed?.statusCode == 500)
  }

  @Test func securityPolicies() {
    let policy = AFSecurityPolicy(pinningMode: AFSSLPinningMode.certificate)
    policy.allowInvalidCertificates = true
    policy.validatesDomainName = false
    policy.pinnedCertificates = NSSet(object: Data([1])) as? Set<Data>
    #expect(policy.sslPinningMode == .certificate && policy.pinnedCertificates?.count == 1)
    let bundled = AFSecurityPolicy(
      pinningMode: .publicKey, withPinnedCertificates: AFSecurityPolicy.certificates(in: Bundle.main))
    #expect(bundled.pinnedCertificates == AFSecurityPolicy(pinningMode: .publicKey).pinnedCertificates)
    #expect(AFSecurityPolicy.default().sslPinningMode == AFSSLPinningMode.none)
  }

  @MainActor @Test func reachability() {
    var descriptions: [String] = []
    let manager = AFNetworkReachabilityManager(forDomain: "www.example.com")
    manager.setReachabilityStatusChange { (status: AFNetworkReachabilityStatus) -> Void in
      switch status {
      case .notReachable: descriptions.append("not reachable")
      case .reachableViaWiFi, .reachableViaWWAN: descriptions.append("reachable")
      case .unknown: descriptions.append("unknown")
      }
    }
    let token = NotificationCenter.default.addObserver(
      forName: NSNotification.Name.AFNetworkingReachabilityDidChange, object: manager, queue: OperationQueue.main
    ) { notification in
      _ = notification.userInfo?[AFNetworkingReachabilityNotificationStatusItem] as? NSNumber
    }
    defer { NotificationCenter.default.removeObserver(token) }
    #expect(!AFNetworkReachabilityManager.shared().isReachableViaWWAN || manager.isReachable == false)
    #expect(manager.localizedNetworkReachabilityStatusString() == "Unknown")
    manager.setReachabilityStatusChange(nil)
    manager.startMonitoring()
    manager.stopMonitoring()
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    #expect(AFNetworkReachabilityManager(forAddress: &address).networkReachabilityStatus == .unknown)
    #expect(descriptions.isEmpty)
  }
}
