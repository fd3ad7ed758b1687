import Ground

/// The identifier of one request in its response, in logs, and towards owners and origins: the
/// value of X-Request-Id.
package struct RequestID: Hashable, Sendable {
    /// The identifier, 1 to ``bytesMax`` bytes for which ``isSafe(_:at:)`` is true.
    package let text: [UInt8]

    /// The name of the field.
    package static let fieldName = "X-Request-Id"
    /// The maximum length in bytes of an identifier that another party chose.
    package static let bytesMax = 128

    /// Creates the identifier of a request from two numbers.
    ///
    /// - Parameters:
    ///   - process: a number that the node drew at its start.
    ///   - number: the number of the request in this process.
    package init(process: UInt64, number: UInt64) {
        var text: [UInt8] = []
        text.reserveCapacity(2 * HexDigits.count)
        HexDigits(process).append(to: &text)
        HexDigits(number).append(to: &text)
        self.text = text
    }

    /// Creates an identifier that another party chose; `nil` if it is not safe to repeat.
    package init?(_ text: [UInt8]) {
        guard Self.isSafe(text.span, at: text.indices) else { return nil }
        self.text = text
    }

    /// Returns true if the identifier can be written into a field and into any log without escapes.
    package static func isSafe(_ bytes: Span<UInt8>, at range: Range<Int>) -> Bool {
        guard 1...bytesMax ~= range.count else { return false }
        for index in range where !ByteSet.requestID.contains(bytes[index]) { return false }
        return true
    }
}

extension RequestID: CustomStringConvertible {
    /// The identifier as text.
    package var description: String { String(decoding: text, as: UTF8.self) }
}

/// A 64-bit number as sixteen hexadecimal digits in lower case, computed without a table, a branch
/// or an allocation.
package struct HexDigits: Hashable, Sendable {
    /// The first eight digits, in memory order of a little-endian machine.
    package let high: UInt64
    /// The last eight digits, in memory order of a little-endian machine.
    package let low: UInt64

    /// The number of digits.
    package static let count = 16

    /// Creates the digits of a number.
    package init(_ number: UInt64) {
        high = Self.digits(number &>> 32)
        low = Self.digits(number & 0xFFFF_FFFF)
    }

    /// Appends the sixteen digits.
    package func append(to bytes: inout [UInt8]) {
        for word in [high, low] {
            for place in 0..<8 as Range<UInt64> {
                bytes.append(UInt8(truncatingIfNeeded: word &>> (8 &* place)))
            }
        }
    }

    /// Returns the eight digits of 32 bits, the first in the lowest byte.
    @inline(__always)
    private static func digits(_ number: UInt64) -> UInt64 {
        // One nibble per byte.
        var lanes = (number | number &<< 16) & 0x0000_FFFF_0000_FFFF
        lanes = (lanes | lanes &<< 8) & 0x00FF_00FF_00FF_00FF
        lanes = (lanes | lanes &<< 4) & 0x0F0F_0F0F_0F0F_0F0F
        // 1 in each byte of ten or more, whose digits are letters and have a further offset.
        let letters = (lanes &+ 0x0606_0606_0606_0606) &>> 4 & 0x0101_0101_0101_0101
        return (lanes &+ 0x3030_3030_3030_3030 &+ letters &* 0x27).byteSwapped
    }
}

/// The identifiers of the request that causes an action, sent to owners and origins and written to
/// logs.
package struct RequestCorrelation: Hashable, Sendable {
    /// The identifier of the request.
    package let id: RequestID
    /// The trace of the request; `nil` if it came without a valid one.
    package let trace: TraceContext?

    /// Creates a correlation from its parts.
    package init(_ id: RequestID, _ trace: TraceContext?) {
        self.id = id
        self.trace = trace
    }

    /// Returns the field lines for an origin.
    ///
    /// - Parameter span: the identifier of the request to the origin in the trace; not zero.
    /// - Returns: the line of X-Request-ID and, if the request is traced, those of traceparent and
    ///   tracestate.
    package func fieldLines(span: UInt64) -> [FieldSetting] {
        var lines = [FieldSetting(.xRequestID, RequestID.fieldName, id.text)]
        guard let trace else { return lines }
        lines.append(FieldSetting(.traceparent, "traceparent", trace.traceparent(span: span)))
        if !trace.state.isEmpty {
            lines.append(FieldSetting(.tracestate, "tracestate", trace.state))
        }
        return lines
    }

    /// Returns true for the fields that ``fieldLines(span:)`` replaces.
    static func contains(_ field: FieldName) -> Bool {
        switch field {
        case .xRequestID, .traceparent, .tracestate: true
        default: false
        }
    }
}
