/// A writer that splits a list of fields into as many frames as needed, in order, each with the
/// same prefix.
///
/// The call that ends a frame throws ``SendError/tooLong(_:)`` if its only field does not fit.
struct FrameSplitter {
    private let kind: PeerFrameKind
    private let prefix: StructureWriter
    private var writer: StructureWriter
    private var frames: [[UInt8]] = []
    private var isFrameEmpty = true

    /// Creates a splitter; `beginning` is the payload up to the first field.
    init(_ kind: PeerFrameKind, _ beginning: StructureWriter) {
        self.kind = kind
        self.prefix = beginning
        writer = beginning
    }

    /// Creates a splitter for frames that consist of fields alone.
    init(_ kind: PeerFrameKind) {
        var beginning = StructureWriter.payload
        beginning.endFixedPart()
        self.init(kind, beginning)
    }

    /// Writes one field for each value, into further frames as needed.
    mutating func putFields<Value: FixedSizeValue>(
        _ tag: UInt16, _ values: [Value]
    ) throws(SendError) {
        for value in values {
            try ensureCapacity(Value.bytesCount)
            writer.putField(tag, value: value)
        }
    }

    /// Writes one field, into a new frame if it does not fit into the present one.
    mutating func putField(_ tag: UInt16, _ value: [UInt8]) throws(SendError) {
        try ensureCapacity(value.count)
        writer.putField(tag, value)
    }

    /// Prepares for a field with a value of `bytesCount` bytes, by ending the frame if it does not
    /// fit.
    private mutating func ensureCapacity(_ bytesCount: Int) throws(SendError) {
        if !isFrameEmpty,
            writer.payloadBytes + StructureReader.fieldHeaderBytes + bytesCount
                > kind.payloadBytesMax
        {
            try endFrame()
        }
        isFrameEmpty = false
    }

    /// Ends the frame, unless it is empty, so that the next field starts another one.
    mutating func endFrame() throws(SendError) {
        guard !isFrameEmpty else { return }
        frames.append(try writer.frame(kind))
        writer = prefix
        isFrameEmpty = true
    }

    /// The bytes left in this frame, including field headers.
    var remainingBytes: Int { kind.payloadBytesMax - writer.payloadBytes }

    /// Returns all frames; one with the prefix alone if nothing was written.
    consuming func finish() throws(SendError) -> [[UInt8]] {
        if !isFrameEmpty || frames.isEmpty { frames.append(try writer.frame(kind)) }
        return frames
    }
}
