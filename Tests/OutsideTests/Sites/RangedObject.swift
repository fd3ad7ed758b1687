import Harness

/// An object whose origin serves ranges (RFC 9110 §14).
struct RangedObject {
    let image: TestImage
    var fields = [lasting, "ETag: \"a\""]
    /// Transforms the complete response, for example to delay it.
    var whole: @Sendable (OriginResponse) -> OriginResponse = { $0 }

    func answer(_ request: OriginRequest) -> OriginResponse {
        let isMeant = request.fields["If-Range"].map { $0 == "\"a\"" } ?? true
        guard let range = request.fields["Range"], isMeant else {
            return whole(OriginResponse(image, fields: fields))
        }
        let specs = range.dropFirst("bytes=".count).split(separator: ",")
        guard specs.count == 1 else { return several(specs.count) }
        guard let bytes = bytes(specs[0]) else {
            return .text(
                "none", status: "416 Range Not Satisfiable",
                fields: ["Content-Range: bytes */\(image.byteCount)"])
        }
        let part = TestImage(
            name: "part", contentType: image.contentType, bytes: image.bytes(bytes))
        let contentRange = "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/\(image.byteCount)"
        return OriginResponse(
            part, status: "206 Partial Content",
            fields: fields + ["Content-Range: \(contentRange)"])
    }

    private func several(_ count: Int) -> OriginResponse {
        .text(
            "\(count) parts", status: "206 Partial Content",
            contentType: "multipart/byteranges; boundary=x", fields: fields)
    }

    private func bytes(_ spec: Substring) -> Range<Int>? {
        let ends = spec.split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
        guard let first = ends[0] else {
            return max(0, image.byteCount - (ends[1] ?? 0))..<image.byteCount
        }
        guard first < image.byteCount else { return nil }
        return first..<min((ends[1] ?? .max - 1) + 1, image.byteCount)
    }
}
