import Ground

/// The sites of a node, looked up by the requested host.
///
/// A copy costs one reference count.
package struct SiteTable: Equatable, Sendable {
    /// A host in `names`, and the site that serves it.
    private struct Row: Equatable {
        var name: Range<Int>
        /// The port; 0 for any.
        var port: UInt16
        var site: Int
    }

    private final class Content: Sendable {
        let sites: [Site]
        /// The names of ``rows``, concatenated.
        let names: [UInt8]
        /// The rows, ordered by name and then by port, with the row for any port first.
        let rows: [Row]
        /// The index of the site for all other hosts; `nil` if there is none.
        let catchAll: Int?

        init(_ sites: [Site]) {
            self.sites = sites
            catchAll = sites.firstIndex { $0.pattern == .catchAll }
            let named = sites.indices.filter { sites[$0].pattern.host != nil }
                .map { (Array((sites[$0].pattern.host ?? "").utf8), $0) }
                .sorted { left, right in
                    if left.0 != right.0 { return left.0.lexicographicallyPrecedes(right.0) }
                    return (sites[left.1].pattern.port ?? 0) < (sites[right.1].pattern.port ?? 0)
                }
            var names: [UInt8] = []
            rows = named.map { name, site in
                names += name
                return Row(
                    name: names.count - name.count..<names.count,
                    port: sites[site].pattern.port ?? 0, site: site)
            }
            self.names = names
        }
    }

    private let content: Content

    /// The table without sites.
    package static let none = SiteTable([])

    /// Creates a table; the sites keep their order as indices, and no two may have the same
    /// pattern.
    package init(_ sites: [Site]) {
        precondition(
            Set(sites.map(\.pattern)).count == sites.count, "two sites of \(sites.map(\.name))")
        content = Content(sites)
    }

    /// Returns true if both tables have equal sites in the same order.
    package static func == (left: SiteTable, right: SiteTable) -> Bool {
        left.content === right.content || left.content.sites == right.content.sites
    }

    /// True if there are no sites.
    package var isEmpty: Bool { content.sites.isEmpty }
    /// The number of sites.
    package var count: Int { content.sites.count }
    /// The sites, in the order of their indices.
    package var sites: [Site] { content.sites }

    /// The names of the sites, in the same order.
    package var names: [String] { content.sites.map(\.name) }

    /// The site at `index`.
    package subscript(index: Int) -> Site { content.sites[index] }

    /// The index of the site `*`; `nil` if there is none.
    package var catchAll: Int? { content.catchAll }

    /// Returns the index of the site that serves an authority, `host[:port]` as in Host (RFC 9110
    /// §7.2); `nil` if there is none.
    ///
    /// The comparison ignores case and a final dot. A site that names the port is preferred to one
    /// that does not, and that to `*`; an authority without a port has port 80, or 443 if
    /// `isSecure`. An empty authority, as HTTP/1.0 permits, and an address that is not in canonical
    /// spelling belong to `*`. An authority that is neither a name nor in brackets has no site.
    ///
    /// - Parameters:
    ///   - bytes: the bytes that hold the authority.
    ///   - range: the range of the authority.
    ///   - isSecure: true if the request came by TLS.
    /// - Returns: the index in ``sites``; `nil` if no site serves the authority.
    package func find(
        _ bytes: Span<UInt8>, at range: Range<Int>, isSecure: Bool = false
    ) -> Int? {
        guard !content.sites.isEmpty else { return nil }
        guard let authority = SiteAuthority(bytes, at: range, isSecure: isSecure)
        else { return nil }
        return row(bytes, authority) ?? content.catchAll
    }

    /// Returns the index of the site that names the host, and the port if one names both; `nil` if
    /// no site but `*` can serve the authority.
    private func row(_ bytes: Span<UInt8>, _ authority: SiteAuthority) -> Int? {
        let rows = content.rows
        var low = 0
        var high = rows.count
        while low < high {
            let middle = (low + high) / 2
            if isBefore(rows[middle], bytes, authority.host) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        var found: Int?
        while low < rows.count, equals(rows[low], bytes, authority.host) {
            if rows[low].port == 0 { found = rows[low].site }
            if rows[low].port == authority.port { return rows[low].site }
            low += 1
        }
        return found
    }

    /// Returns true if the row's name sorts before the one in `range`.
    private func isBefore(_ row: Row, _ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        let names = content.names
        for offset in 0..<min(row.name.count, range.count) {
            let own = names[row.name.lowerBound + offset]
            let asked = ASCII.lowercased(bytes[range.lowerBound + offset])
            if own != asked { return own < asked }
        }
        return row.name.count < range.count
    }

    private func equals(_ row: Row, _ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        guard row.name.count == range.count else { return false }
        let names = content.names
        for offset in 0..<range.count
        where names[row.name.lowerBound + offset]
            != ASCII.lowercased(bytes[range.lowerBound + offset])
        {
            return false
        }
        return true
    }
}

/// The host and port of a requested authority, as far as sites distinguish hosts.
struct SiteAuthority: Hashable {
    /// The range of the host without a final dot, of an IPv6 address with its brackets; empty if
    /// the authority is.
    var host: Range<Int>
    /// The port; if none is written, that of the scheme: 443 for TLS, else 80.
    var port: UInt16

    /// Parses an authority.
    ///
    /// Returns `nil` if it holds more than a name of letters, digits, `-`, `_` and `.`, or an
    /// address in brackets, and a port: keys must show where the host ends.
    init?(_ bytes: Span<UInt8>, at range: Range<Int>, isSecure: Bool) {
        var end = range.lowerBound
        if !range.isEmpty, bytes[end] == UInt8(ascii: "[") {
            end += 1
            while end < range.upperBound, bytes[end] != UInt8(ascii: "]") {
                guard
                    ASCII.hexValue(bytes[end]) != nil || bytes[end] == UInt8(ascii: ":")
                        || bytes[end] == UInt8(ascii: ".")
                else { return nil }
                end += 1
            }
            guard end < range.upperBound else { return nil }
            end += 1
        } else {
            // Labels of 1 to 63 characters, 253 in total, optionally with a final dot (RFC 1035
            // §2.3.4); or nothing.
            var label = end
            while end < range.upperBound, ByteSet.host.contains(ASCII.lowercased(bytes[end])) {
                if bytes[end] == UInt8(ascii: ".") {
                    guard 1...63 ~= end - label else { return nil }
                    label = end + 1
                }
                end += 1
            }
            let isEnded = label == end
            guard end - label <= 63, end - range.lowerBound - (isEnded ? 1 : 0) <= 253 else {
                return nil
            }
        }
        host = range.lowerBound..<end
        if host.count > 1, bytes[end - 1] == UInt8(ascii: ".") {
            host = host.lowerBound..<end - 1
        }
        port = isSecure ? 443 : 80
        guard end < range.upperBound else { return }
        guard !host.isEmpty, bytes[end] == UInt8(ascii: ":") else { return nil }
        guard end + 1 < range.upperBound else { return }
        var number = 0
        for index in end + 1..<range.upperBound {
            guard ASCII.isDigit(bytes[index]), number <= 65_535 else { return nil }
            number = number * 10 + Int(bytes[index] &- 0x30)
        }
        guard let port = UInt16(exactly: number), port > 0 else { return nil }
        self.port = port
    }
}
