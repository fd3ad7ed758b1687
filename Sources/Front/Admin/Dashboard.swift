import Admin
import CDashboard
import FoundationEssentials
import Ground
import Wire

/// The browser dashboard at `/` on the admin port: one HTML document with its style and script
/// inline.
///
/// The page loads all data from the admin API of the same node.
enum Dashboard {
    /// The bytes of the page's `<style>` element.
    static let style = unsafe bytes(cdashboard_style())

    /// The bytes of the page's `<script>` element.
    static let script = unsafe bytes(cdashboard_script())

    /// Media type of the page.
    static let contentType = "text/html; charset=utf-8"

    /// The complete document, with style and script inserted.
    static let page = inserting(
        inserting(unsafe bytes(cdashboard_document()), "/*STYLE*/", style), "/*SCRIPT*/", script)

    /// Copies a text that is compiled into the binary.
    private static func bytes(_ text: cdashboard_text) -> [UInt8] {
        unsafe Array(UnsafeBufferPointer(start: text.bytes, count: text.count))
    }

    /// Returns `page` with the first occurrence of `place` replaced by `content`.
    ///
    /// - Precondition: `page` contains `place`.
    private static func inserting(
        _ page: [UInt8], _ place: String, _ content: [UInt8]
    ) -> [UInt8] {
        guard let range = page.firstRange(of: Array(place.utf8)) else {
            preconditionFailure("the page has no place for \(place)")
        }
        return page[..<range.lowerBound] + content + page[range.upperBound...]
    }

    /// Returns the Content-Security-Policy of the page (CSP Level 3).
    ///
    /// The page may run only this script and this style, connect only to this node, and not be
    /// framed.
    ///
    /// - Parameters:
    ///   - styleHash: the base64 of the SHA-256 of ``style``.
    ///   - scriptHash: the base64 of the SHA-256 of ``script``.
    /// - Returns: the value of the field, without its name.
    static func contentSecurityPolicy(styleHash: String, scriptHash: String) -> String {
        "default-src 'none'; script-src 'sha256-\(scriptHash)'; style-src 'sha256-\(styleHash)'; "
            + "img-src 'self' blob: data:; connect-src 'self'; base-uri 'none'; "
            + "form-action 'none'; frame-ancestors 'none'"
    }
}

extension AdminHandler {
    /// Sends the dashboard page.
    func sendDashboard() {
        response.sendText(
            status: 200, contentType: Dashboard.contentType, Dashboard.page,
            fields: Self.dashboardFields)
    }

    /// Field lines of the response: caching and security policies.
    private static let dashboardFields: String = {
        func hash(_ bytes: [UInt8]) -> String { Data(sha256(bytes.span)).base64EncodedString() }
        let policy = Dashboard.contentSecurityPolicy(
            styleHash: hash(Dashboard.style), scriptHash: hash(Dashboard.script))
        // The browser must revalidate the page, because another version of the node has another
        // page.
        return "Cache-Control: no-cache\r\nContent-Security-Policy: \(policy)\r\n"
            + "Referrer-Policy: no-referrer\r\n"
    }()
}
