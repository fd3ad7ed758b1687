/// What came of a request's body at the origin.
package struct OriginRequestBody: Sendable {
    /// Bytes so far.
    package var byteCount = 0
    /// The bytes, nil where they were only compared.
    package var bytes: [UInt8]?
    /// Whether they are a beginning of the expected image; true if none was expected.
    package var isAsExpected = true
    /// Whether its end has come.
    package var isComplete = false
    /// The field lines behind its last chunk.
    package var trailers = HeaderFields()

    /// The body as text.
    package var text: String { String(decoding: bytes ?? [], as: UTF8.self) }
}
