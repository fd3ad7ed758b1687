package import Ground

/// What has as many bytes whatever it is: an element of lists, or the whole of a field.
package protocol FixedSizeValue {
    /// Size in bytes.
    static var bytesCount: Int { get }

    /// The value of the bytes from `offset`; nil if nothing can be what they say.
    init?(_ bytes: Span<UInt8>, at offset: Int)

    func put(into writer: inout StructureWriter)
}

extension StructureWriter {
    mutating func putField<Value: FixedSizeValue>(_ tag: UInt16, value: Value) {
        beginField(tag, bytesCount: Value.bytesCount)
        value.put(into: &self)
    }

    /// Puts a field for each.
    mutating func putFields<Value: FixedSizeValue>(_ tag: UInt16, _ values: [Value]) {
        for value in values { putField(tag, value: value) }
    }

    /// Puts a list in one field, element behind element, unless it is empty.
    mutating func putField<Value: FixedSizeValue>(_ tag: UInt16, list values: [Value]) {
        guard !values.isEmpty else { return }
        beginField(tag, bytesCount: values.count * Value.bytesCount)
        for value in values { value.put(into: &self) }
    }
}

extension StructureReader {
    /// What `field` is; bytes behind what is known of it are skipped.
    func fixedSizeValue<Value: FixedSizeValue>(
        _ bytes: Span<UInt8>, _ field: Field
    ) throws(PeerFault) -> Value {
        try require(Value.bytesCount, of: field)
        return try value(bytes, at: field.range.lowerBound)
    }

    /// What all fields of this tag are that are yet to come.
    mutating func values<Value: FixedSizeValue>(
        _ bytes: Span<UInt8>, _ tag: UInt16
    ) throws(PeerFault) -> [Value] {
        var values: [Value] = []
        while let field = try next(bytes) {
            if field.tag == tag { values.append(try fixedSizeValue(bytes, field)) }
        }
        return values
    }

    /// The list that `field` is, of at least one and at most `countMax`.
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
    package func put(into writer: inout StructureWriter) { writer.put(self) }
}

extension ProcessID: FixedSizeValue {
    package static let bytesCount = 16

    package init(_ bytes: Span<UInt8>, at offset: Int) { self = bytes.process(at: offset) }

    package func put(into writer: inout StructureWriter) { writer.put(self) }
}

extension UInt64: FixedSizeValue {
    package static let bytesCount = 8

    package init(_ bytes: Span<UInt8>, at offset: Int) { self = bytes.little64(at: offset) }

    package func put(into writer: inout StructureWriter) { writer.put(self) }
}

/// What goes in frames of its own, several in one, each in a field.
package protocol BatchElement: FixedSizeValue {
    static var kind: PeerFrameKind { get }
    /// The most in one frame.
    static var countMax: Int { get }
    /// What is passed by more.
    static var limit: PeerLimit { get }
}

extension BatchElement {
    private static var tag: UInt16 { 1 }

    /// The frame of several.
    ///
    /// - Throws: ``SendError/tooLong(_:)`` for more than ``countMax``.
    package static func frame(_ batch: [Self]) throws(SendError) -> [UInt8] {
        guard batch.count <= countMax else { throw .tooLong(limit) }
        var writer = StructureWriter.payload
        writer.endFixedPart()
        writer.putFields(tag, batch)
        return try writer.frame(kind)
    }

    /// Those in `payload`.
    ///
    /// - Throws: what is wrong with it.
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
