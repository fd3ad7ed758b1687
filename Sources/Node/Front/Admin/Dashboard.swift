import Admin
import CDashboard
import FoundationEssentials
import Ground
import Wire

/// The page for browsers at `/`: one document with its style and its script in it, which asks for
/// everything else where it comes from.
enum Dashboard {
    /// What stands in the page's `<style>`, byte by byte.
    static let style = unsafe bytes(cdashboard_style())

    /// What stands in its `<script>`, byte by byte.
    static let script = unsafe bytes(cdashboard_script())

    static let contentType = "text/html; charset=utf-8"

    /// The whole page.
    static let page = inserting(
        inserting(unsafe bytes(cdashboard_document()), "/*STYLE*/", style), "/*SCRIPT*/", script)

    private static func bytes(_ text: cdashboard_text) -> [UInt8] {
        unsafe Array(UnsafeBufferPointer(start: text.bytes, count: text.count))
    }

    /// `page` with `content` where `place` stands.
    private static func inserting(
        _ page: [UInt8], _ place: String, _ content: [UInt8]
    ) -> [UInt8] {
        guard let range = page.firstRange(of: Array(place.utf8)) else {
            preconditionFailure("the page has no place for \(place)")
        }
        return page[..<range.lowerBound] + content + page[range.upperBound...]
    }

    /// What a browser lets the page do (CSP Level 3): run this script and this style alone, ask
    /// nobody but this node, and be shown in nobody's frame.
    ///
    /// The hashes are the base64 of the SHA-256 of ``style`` and ``script``.
    static func contentSecurityPolicy(styleHash: String, scriptHash: String) -> String {
        "default-src 'none'; script-src 'sha256-\(scriptHash)'; style-src 'sha256-\(styleHash)'; "
            + "img-src 'self' blob: data:; connect-src 'self'; base-uri 'none'; "
            + "form-action 'none'; frame-ancestors 'none'"
    }
}

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
