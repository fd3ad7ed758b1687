package import Ground

/// A value with a fixed encoded size: an element of a list, or a whole field.
package protocol FixedSizeValue {
    /// The encoded size in bytes.
    static var bytesCount: Int { get }

    /// Decodes the value at `offset`; `nil` if the bytes are not a valid value.
    init?(_ bytes: Span<UInt8>, at offset: Int)

    /// Encodes the value, in exactly ``bytesCount`` bytes.
    func put(into writer: inout StructureWriter)
}

extension StructureWriter {
    /// Writes the value as one field.
    mutating func putField<Value: FixedSizeValue>(_ tag: UInt16, value: Value) {
        beginField(tag, bytesCount: Value.bytesCount)
        value.put(into: &self)
    }

    /// Writes one field for each value.
    mutating func putFields<Value: FixedSizeValue>(_ tag: UInt16, _ values: [Value]) {
        for value in values { putField(tag, value: value) }
    }

    /// Writes all values into one field, consecutively; writes nothing for an empty list.
    mutating func putField<Value: FixedSizeValue>(_ tag: UInt16, list values: [Value]) {
        guard !values.isEmpty else { return }
        beginField(tag, bytesCount: values.count * Value.bytesCount)
        for value in values { value.put(into: &self) }
    }
}

extension StructureReader {
    /// Decodes the value of `field`; bytes after the known ones are skipped.
    ///
    /// - Throws: The fault, if the field is too short or has an invalid value.
    func fixedSizeValue<Value: FixedSizeValue>(
        _ bytes: Span<UInt8>, _ field: Field
    ) throws(PeerFault) -> Value {
        try require(Value.bytesCount, of: field)
        return try value(bytes, at: field.range.lowerBound)
    }

    /// Decodes all remaining fields with `tag`; skips the others.
    ///
    /// - Throws: The fault, if a field is truncated or has an invalid value.
    mutating func values<Value: FixedSizeValue>(
        _ bytes: Span<UInt8>, _ tag: UInt16
    ) throws(PeerFault) -> [Value] {
        var values: [Value] = []
        while let field = try next(bytes) {
            if field.tag == tag { values.append(try fixedSizeValue(bytes, field)) }
        }
        return values
    }

    /// Decodes a field that holds a list of at least one and at most `countMax` values.
    ///
    /// - Throws: ``PeerFault/tooLong(_:)`` for more values, ``PeerFault/malformed(_:)`` for none, a
    ///   part of one, or an invalid one.
    func list<Value: FixedSizeValue>(
        _ bytes: Span<UInt8>, _ field: Field, countMax: Int
    ) throws(PeerFault) -> [Value] {
        let size = Value.bytesCount
        let (count, rest) = field.range.count.quotientAndRemainder(dividingBy: size)
        guard rest == 0, count > 0 else { throw .malformed(kind) }
        guard count <= countMax else { throw .tooLong(.list) }
        var values: [Value] = []
        values.reserveCapacity(count)
        for offset in stride(from: field.range.lowerBound, to: field.range.upperBound, by: size) {
            values.append(try value(bytes, at: offset))
        }
        return values
    }

    private func value<Value: FixedSizeValue>(
        _ bytes: Span<UInt8>, at offset: Int
    ) throws(PeerFault) -> Value {
        guard let value = Value(bytes, at: offset) else { throw .malformed(kind) }
        return value
    }
}

extension NodeID: FixedSizeValue {
    /// Encodes the id.
    package func put(into writer: inout StructureWriter) { writer.put(self) }
}

extension ProcessID: FixedSizeValue {
    /// The encoded size in bytes.
    package static let bytesCount = 16

    /// Decodes the id at `offset`.
    package init(_ bytes: Span<UInt8>, at offset: Int) { self = bytes.process(at: offset) }

    /// Encodes the id.
    package func put(into writer: inout StructureWriter) { writer.put(self) }
}

extension UInt64: FixedSizeValue {
    /// The encoded size in bytes.
    package static let bytesCount = 8

    /// Decodes the little-endian number at `offset`.
    package init(_ bytes: Span<UInt8>, at offset: Int) { self = bytes.little64(at: offset) }

    /// Encodes the number, little-endian.
    package func put(into writer: inout StructureWriter) { writer.put(self) }
}

/// A value that may occur several times in one frame, each time in a separate field.
package protocol BatchElement: FixedSizeValue {
    /// The kind of the frame.
    static var kind: PeerFrameKind { get }
    /// Maximum number of values in one frame.
    static var countMax: Int { get }
    /// The limit to report when a frame has more.
    static var limit: PeerLimit { get }
}

extension BatchElement {
    private static var tag: UInt16 { 1 }

    /// Returns a frame with the values of `batch`.
    ///
    /// - Throws: ``SendError/tooLong(_:)`` for more than ``countMax`` values.
    package static func frame(_ batch: [Self]) throws(SendError) -> [UInt8] {
        guard batch.count <= countMax else { throw .tooLong(limit) }
        var writer = StructureWriter.payload
        writer.endFixedPart()
        writer.putFields(tag, batch)
        return try writer.frame(kind)
    }

    /// Decodes the values of a frame's `payload`.
    ///
    /// - Throws: The fault, if the payload is not valid.
    package static func read(payload: Span<UInt8>) throws(PeerFault) -> [Self] {
        var structure = try StructureReader(payload, fixedBytes: 2, in: kind)
        var batch: [Self] = []
        while let field = try structure.next(payload) {
            guard field.tag == tag else { continue }
            let value: Self = try structure.fixedSizeValue(payload, field)
            guard batch.count < countMax else { throw .tooLong(limit) }
            batch.append(value)
        }
        return batch
    }
}
