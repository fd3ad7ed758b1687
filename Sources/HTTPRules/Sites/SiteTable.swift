import Ground

/// The sites of a node, found by what a request says of its host.
///
/// A copy costs one reference count.
package struct SiteTable: Equatable, Sendable {
    /// A host in `names` and the site that answers to it.
    private struct Row: Equatable {
        var name: Range<Int>
        /// 0 for any.
        var port: UInt16
        var site: Int
    }

    private final class Content: Sendable {
        let sites: [Site]
        /// The names of ``rows``, one after the other.
        let names: [UInt8]
        /// In the order of names; those of one name in the order of ports, the one for any first.
        let rows: [Row]
        /// The site of all other hosts.
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

    /// No site.
    package static let none = SiteTable([])

    /// The sites in the order that their indices have; no two may have one pattern.
    package init(_ sites: [Site]) {
        precondition(
            Set(sites.map(\.pattern)).count == sites.count, "two sites of \(sites.map(\.name))")
        content = Content(sites)
    }

    package static func == (left: SiteTable, right: SiteTable) -> Bool {
        left.content === right.content || left.content.sites == right.content.sites
    }

    package var isEmpty: Bool { content.sites.isEmpty }
    package var count: Int { content.sites.count }
    package var sites: [Site] { content.sites }

    /// What the sites are called, in the same order.
    package var names: [String] { content.sites.map(\.name) }

    package subscript(index: Int) -> Site { content.sites[index] }

    /// The index of the site `*`; nil if there is none.
    package var catchAll: Int? { content.catchAll }

    /// The index of the site that answers to the authority in `range` of `bytes`, `host[:port]` as
    /// Host has it (RFC 9110 §7.2); nil if there is none.
    ///
    /// Compared without regard to case and to a final dot. A site that names the port comes before
    /// one that does not, and that before `*`; an authority without a port has port 80,
    /// or 443 in a request that came encrypted. An empty
    /// one, as HTTP/1.0 allows, and an address in another spelling than the canonical one are left
    /// to `*`. What is neither a name nor in brackets has no site.
    package func find(
        _ bytes: Span<UInt8>, at range: Range<Int>, isSecure: Bool = false
    ) -> Int? {
        guard !content.sites.isEmpty else { return nil }
        guard let authority = SiteAuthority(bytes, at: range, isSecure: isSecure)
        else { return nil }
        return row(bytes, authority) ?? content.catchAll
    }

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

    /// True if the row's name comes before the one in `range`.
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

/// An authority of a request taken apart, as far as sites tell hosts apart.
struct SiteAuthority: Hashable {
    /// Without a final dot, an IPv6 address with its brackets; empty if the authority is.
    var host: Range<Int>
    /// Where none is written, that of the scheme: 80, or 443 for what came encrypted.
    var port: UInt16

    /// Nil if there is more in it than a name of letters, digits, `-`, `_` and `.`, or an address
    /// in brackets, and a port: keys must say where the host ends.
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
            // Labels of 1 to 63 characters, 253 together, and perhaps a dot behind them (RFC 1035
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
