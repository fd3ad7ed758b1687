/// The page for browsers at `/`: one document with its style and its script in it, which asks for
/// everything else where it comes from.
package enum Dashboard {
    /// What stands in the page's `<style>`, byte by byte.
    package static let style = PackageResources.dashboard_css

    /// What stands in its `<script>`, byte by byte: the parts in the order in which one needs
    /// another.
    package static let script: [UInt8] = [
        PackageResources.format_js, PackageResources.dom_js, PackageResources.nodes_js,
        PackageResources.session_js, PackageResources.api_js, PackageResources.stream_js,
        PackageResources.timeline_js, PackageResources.charts_js, PackageResources.traffic_js,
        PackageResources.tiers_js, PackageResources.ring_js, PackageResources.members_js,
        PackageResources.hot_js, PackageResources.inspect_js, PackageResources.receipt_js,
        PackageResources.purge_js, PackageResources.state_js, PackageResources.drain_js,
        PackageResources.theme_js, PackageResources.page_js,
    ].flatMap(\.self)

    package static let contentType = "text/html; charset=utf-8"

    /// The whole page.
    package static let page = filled(
        filled(PackageResources.dashboard_html, "/*STYLE*/", style), "/*SCRIPT*/", script)

    /// `page` with `content` where `place` stands.
    private static func filled(
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
    package static func policy(styleHash: String, scriptHash: String) -> String {
        "default-src 'none'; script-src 'sha256-\(scriptHash)'; style-src 'sha256-\(styleHash)'; "
            + "img-src 'self' blob: data:; connect-src 'self'; base-uri 'none'; "
            + "form-action 'none'; frame-ancestors 'none'"
    }
}
