/// The names of Larkspur's own modules, which are also the names of their targets.
package enum OwnModules {
  package static let names: Set<String> = [
    "AFNetworking", "AFNetworkingXML", "CLarkspurLinux", "CLarkspurOpenSSL", "CLarkspurScan", "CLarkspurTestServer",
    "CLarkspurZlib", "FoundationNetworking", "Larkspur", "LarkspurBytes", "LarkspurCoding", "LarkspurHTTP",
    "LarkspurIO",
    "LarkspurTLS", "LarkspurTestServer", "LarkspurTransport", "larkspur",
  ]
}
