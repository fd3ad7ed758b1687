import Admin
import FoundationEssentials
import Ground
import Wire

extension RequestHandler {
    func sendDashboard() {
        sendText(
            status: 200, contentType: Dashboard.contentType, Dashboard.page,
            fields: Self.dashboardFields)
    }

    private static let dashboardFields: String = {
        func hash(_ bytes: [UInt8]) -> String { Data(sha256(bytes.span)).base64EncodedString() }
        let policy = Dashboard.contentSecurityPolicy(
            styleHash: hash(Dashboard.style), scriptHash: hash(Dashboard.script))
        // Of another version of the node the page is another one.
        return "Cache-Control: no-cache\r\nContent-Security-Policy: \(policy)\r\n"
            + "Referrer-Policy: no-referrer\r\n"
    }()
}
