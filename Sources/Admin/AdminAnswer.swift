package import Telemetry

/// One page of the admin port, rendered; not to be stored by anyone.
package struct AdminAnswer: Hashable, Sendable {
    package let status: UInt16
    package let contentType: String
    package let body: String

    /// Renders `page`; `snapshot`, `origins` and `members` are taken only if the page shows them.
    ///
    /// A node that is not ready answers 503 on its readiness page, and 200 on its health page; one
    /// that `isFenced` says so, and is ready all the same: it can serve, at the price of asking
    /// origins.
    package init(
        _ page: AdminPage, readiness: Readiness, isFenced: Bool = false,
        snapshot: @autoclosure () -> Snapshot,
        origins: @autoclosure () -> [OriginRow], members: @autoclosure () -> [MemberRow]
    ) {
        switch page {
        case .health:
            self.init(status: 200, state: "ok")
        case .readiness:
            self.init(
                status: readiness == .ready ? 200 : 503, state: readiness.rawValue,
                isFenced: isFenced)
        case .metrics:
            self.init(
                status: 200, contentType: PrometheusText.contentType,
                body: PrometheusText.render(snapshot()))
        case .origins:
            self.init(
                status: 200, contentType: "application/json",
                body: OriginRow.json(origins()))
        case .members:
            self.init(
                status: 200, contentType: "application/json", body: MemberRow.json(members()))
        }
    }

    private init(status: UInt16, state: String, isFenced: Bool = false) {
        let fence = isFenced ? ",\"fenced\":true" : ""
        self.init(
            status: status, contentType: "application/json",
            body: "{\"status\":\"\(state)\"\(fence)}\n")
    }

    private init(status: UInt16, contentType: String, body: String) {
        self.status = status
        self.contentType = contentType
        self.body = body
    }
}
