/// The names of Larkspur's own modules, which are also the names of their targets.
package enum OwnModules {
  package static let names: Set<String> = [
    "AFNetworking", "AFNetworkingXML", "CLarkspurLinux", "CLarkspurOpenSSL", "CLarkspurScan", "CLarkspurTestServer",
    "CLarkspurZip", "FoundationNetworking", "Larkspur", "LarkspurBytes", "LarkspurClient", "LarkspurCoding",
    "LarkspurCommand", "LarkspurConsole", "LarkspurDemonstration", "LarkspurEngine", "LarkspurHTTP", "LarkspurIO",
    "LarkspurTLS", "LarkspurTestServer", "LarkspurTransferServer", "LarkspurTransfers", "LarkspurTransport",
    "ZipArchive",
  ]
}
