import Harness
import Testing

/// The receipt of a purge as the admin port returns it.
struct PurgeReceipt {
    let status: Int
    let name: String
    let id: String
    /// The standing of each member by node id.
    let members: [String: String]
    let isConfirmedByAll: Bool
    let problem: String

    init(_ response: Response) throws {
        status = response.status
        let fields = try #require(response.document, "\(response)")
        name = fields["receipt"] as? String ?? ""
        id = fields["id"] as? String ?? ""
        isConfirmedByAll = fields["all_confirmed"] as? Bool ?? false
        problem = fields["type"] as? String ?? ""
        let rows = fields["members"] as? [[String: Any]] ?? []
        members = Dictionary(
            rows.map { ($0["node"] as? String ?? "", $0["standing"] as? String ?? "") },
            uniquingKeysWith: { first, _ in first })
    }
}

extension NodeProcess {
    /// Requests a purge of `targets` (JSON) at the admin port.
    func purge(
        _ targets: String, mode: String = "hard", id: String? = nil, wait: String = "all",
        timeout: String = "10s"
    ) throws -> PurgeReceipt {
        let name = id.map { "\"id\":\"\($0)\"," } ?? ""
        let body = "{\(name)\"mode\":\"\(mode)\",\"targets\":[\(targets)]}"
        return try purge(body: body, query: "?wait=\(wait)&timeout=\(timeout)")
    }

    func purge(body: String, query: String = "") throws -> PurgeReceipt {
        try PurgeReceipt(connectAdmin().post(body, to: "/admin/v1/purges\(query)"))
    }

    func receipt(_ name: String) throws -> PurgeReceipt {
        try PurgeReceipt(try connectAdmin().get("/admin/v1/purges/\(name)"))
    }
}
