/// What the admin port serves.
package enum AdminPage: String, CaseIterable, Sendable {
    /// Whether the process answers at all.
    case health = "/healthz"
    /// Whether requests should be sent to this node.
    case readiness = "/readyz"
    case metrics = "/metrics"
    /// How things stand with each origin.
    case origins = "/admin/v1/origins"

    /// Who is in the cluster, as this node believes.
    case members = "/admin/v1/members"

    /// Clients may see it too, on the data port.
    package var isPublic: Bool { self == .health || self == .readiness }

    /// The paths of those that ``isPublic``.
    package static let publicPaths = allCases.filter(\.isPublic).map(\.rawValue)
}

/// What the admin port does when it is told to, by POST.
package enum AdminAction: String, CaseIterable, Sendable {
    /// Hand over what the node keeps, leave the cluster, and stop.
    case drain = "/admin/v1/drain"
}

/// What is to be done about one request to the admin port.
package enum AdminRoute: Hashable, Sendable {
    /// Answer with ``AdminAnswer``; to HEAD without the body.
    case page(AdminPage)
    /// Begin it, and answer 202.
    case action(AdminAction)
    /// Begin to count the member with this id no longer, and answer 202.
    case forget(String)
    /// 404: there is nothing of this name.
    case notFound
    /// 405 with this in Allow (RFC 9110 §15.5.6).
    case methodNotAllowed(allowed: String)

    /// The value of Allow for every page.
    package static let pageMethods = "GET, HEAD"

    /// The route of a request with `method` for `target`, in origin form, whose query is ignored.
    package init(method: String, target: String) {
        let path = target.prefix { $0 != "?" }
        if let action = AdminAction(rawValue: String(path)) {
            self = method == "POST" ? .action(action) : .methodNotAllowed(allowed: "POST")
        } else if let member = Self.forgotten(path) {
            self = method == "POST" ? .forget(member) : .methodNotAllowed(allowed: "POST")
        } else if let page = AdminPage(rawValue: String(path)) {
            self =
                method == "GET" || method == "HEAD"
                ? .page(page) : .methodNotAllowed(allowed: Self.pageMethods)
        } else {
            self = .notFound
        }
    }

    /// The id in `/admin/v1/members/<id>/forget`.
    private static func forgotten(_ path: Substring) -> String? {
        let (start, end) = ("\(AdminPage.members.rawValue)/", "/forget")
        guard path.hasPrefix(start), path.hasSuffix(end), path.utf8.count > (start + end).utf8.count
        else { return nil }
        let id = path.dropFirst(start.count).dropLast(end.count)
        return id.contains("/") ? nil : String(id)
    }
}
