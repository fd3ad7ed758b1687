import Ground

/// The CDN-Loop field: the caches that a request has passed through (RFC 8586).
///
/// Unlike Via it identifies each of them, and it is forwarded regardless of a site's settings.
package enum CDNLoop {
    /// The name of this cache in CDN-Loop, in lower case.
    package static let name = "nuthatch"

    /// An identifier of one kind of request on its way through one process.
    ///
    /// A request that returns with its own identifier would wait for its own response: that is a
    /// loop. Not a loop is a request that an origin makes through the same node for something else,
    /// nor one that came through other nodes, of the same cluster or not.
    package struct LoopIdentifier: Hashable, Sendable {
        private let processID: UInt64
        private let requestHash: UInt64

        /// Creates an identifier.
        ///
        /// - Parameters:
        ///   - process: a number that no other process of any node has.
        ///   - request: a hash of the requested resource, the same each time.
        package init(process: UInt64, request: UInt64) {
            self.processID = process
            self.requestHash = request
        }

        /// Appends the identifier as 32 hexadecimal digits.
        package func append(to bytes: inout [UInt8]) {
            HexDigits(processID).append(to: &bytes)
            HexDigits(requestHash).append(to: &bytes)
        }
    }

    /// Appends this node's CDN-Loop line; it must follow the lines received.
    package static func append(_ passage: LoopIdentifier, to bytes: inout [UInt8]) {
        bytes.append(contentsOf: "CDN-Loop: \(name);id=".utf8)
        passage.append(to: &bytes)
        bytes.append(contentsOf: "\r\n".utf8)
    }

    /// Returns true if the request with these lines has passed with this identifier before.
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

    /// Returns how many members of CDN-Loop among `lines` name Nuthatch.
    package static func count(_ lines: [FieldLine], in bytes: Span<UInt8>) -> Int {
        var count = 0
        forEach(lines, in: bytes) { _ in count += 1 }
        return count
    }

    /// Returns true for the name CDN-Loop.
    static func isFieldName(_ bytes: Span<UInt8>, at name: Range<Int>) -> Bool {
        name.count == 8 && bytes.matchesIgnoringCase("cdn-loop", at: name)
    }

    /// Calls `body` with the parameters of each member that names Nuthatch.
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
