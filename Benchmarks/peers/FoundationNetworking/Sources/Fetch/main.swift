import Foundation
import FoundationNetworking

guard let url = URL(string: CommandLine.arguments[1]) else { exit(2) }
let (body, _) = try await URLSession.shared.data(from: url)
print(body.count)
