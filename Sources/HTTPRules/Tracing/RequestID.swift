/// What one request is called in its answer, in lines of logs, and towards owners and origins: the
/// value of X-Request-Id.
package struct RequestID: Hashable, Sendable {
    /// 1 to ``bytesMax`` bytes, which ``isSafe(_:at:)``.
    package let text: [UInt8]

    /// The name of the field.
    package static let fieldName = "X-Request-Id"
    /// What somebody else may call a request.
    package static let bytesMax = 128

    /// The request with this number of a run of the node: what it drew at its start.
    package init(process: UInt64, number: UInt64) {
        var text: [UInt8] = []
        text.reserveCapacity(2 * HexDigits.count)
        HexDigits(process).append(to: &text)
        HexDigits(number).append(to: &text)
        self.text = text
    }

    /// What somebody else calls it; nil if that is not safe to repeat.
    package init?(_ text: [UInt8]) {
        guard Self.isSafe(text.span, at: text.indices) else { return nil }
        self.text = text
    }

    /// True for a name that can stand in a field and in a line of any log as it is.
    package static func isSafe(_ bytes: Span<UInt8>, at range: Range<Int>) -> Bool {
        guard 1...bytesMax ~= range.count else { return false }
        for index in range where !ByteSet.requestID.contains(bytes[index]) { return false }
        return true
    }
}

extension RequestID: CustomStringConvertible {
    package var description: String { String(decoding: text, as: UTF8.self) }
}
