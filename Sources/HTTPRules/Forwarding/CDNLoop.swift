import Ground

/// The caches that a request has come through (RFC 8586): unlike Via it says which ones, and goes
/// on whatever a site's settings are.
package enum CDNLoop {
    /// What Nuthatch calls itself there, in lower case.
    package static let name = "nuthatch"

    /// A request for one thing, on its way through one process.
    ///
    /// What comes back as it went asks for what itself is waited for: that is a loop. A request
    /// that an origin makes through the same node, for something else, is none; nor is one that
    /// came through other nodes, of the same cluster or not.
    package struct LoopIdentifier: Hashable, Sendable {
        private let processID: UInt64
        private let requestHash: UInt64

        /// - Parameters:
        ///   - process: unlike that of any other process of any node.
        ///   - request: a hash of what is asked for, the same each time.
        package init(process: UInt64, request: UInt64) {
            self.processID = process
            self.requestHash = request
        }

        /// 32 hexadecimal digits.
        package func append(to bytes: inout [UInt8]) {
            for word in [processID, requestHash] {
                for shift in stride(from: 60, through: 0, by: -4) {
                    bytes.append(ASCII.hexDigit(UInt8(word >> UInt64(shift) & 15)))
                }
            }
        }
    }

    /// Appends our line; those that came stand before it.
    package static func append(_ passage: LoopIdentifier, to bytes: inout [UInt8]) {
        bytes.append(contentsOf: "CDN-Loop: \(name);id=".utf8)
        passage.append(to: &bytes)
        bytes.append(contentsOf: "\r\n".utf8)
    }

    /// True if the request that has `lines` came by on this passage already.
    package static func contains(
        _ passage: LoopIdentifier, _ lines: [FieldLine], in bytes: Span<UInt8>
    ) -> Bool {
        var wanted = Array("id=".utf8)
        passage.append(to: &wanted)
        var isFound = false
        forEach(lines, in: bytes) { parameters in
            var rest = parameters
            while !rest.isEmpty {
                let end = FieldSyntax.find(UInt8(ascii: ";"), in: bytes, at: rest)
                let parameter = FieldSyntax.trimmed(bytes, at: rest.lowerBound..<end)
                if bytes.copy(parameter) == wanted { isFound = true }
                rest = min(end + 1, rest.upperBound)..<rest.upperBound
            }
        }
        return isFound
    }

    /// How often Nuthatch stands among `lines`.
    package static func count(_ lines: [FieldLine], in bytes: Span<UInt8>) -> Int {
        var count = 0
        forEach(lines, in: bytes) { _ in count += 1 }
        return count
    }

    /// True for the field itself.
    static func isFieldName(_ bytes: Span<UInt8>, at name: Range<Int>) -> Bool {
        name.count == 8 && bytes.matchesIgnoringCase("cdn-loop", at: name)
    }

    /// Calls `body` with the parameters of each of our members.
    private static func forEach(
        _ lines: [FieldLine], in bytes: Span<UInt8>, _ body: (Range<Int>) -> Void
    ) {
        for line in lines where line.id == .other && isFieldName(bytes, at: line.name.range) {
            let range = line.value.range
            var cursor = range.lowerBound
            while let member = FieldSyntax.nextElement(bytes, at: range, cursor: &cursor) {
                let end = FieldSyntax.find(UInt8(ascii: ";"), in: bytes, at: member)
                let cache = FieldSyntax.trimmed(bytes, at: member.lowerBound..<end)
                guard bytes.matchesIgnoringCase(name, at: cache) else { continue }
                body(min(end + 1, member.upperBound)..<member.upperBound)
            }
        }
    }
}
