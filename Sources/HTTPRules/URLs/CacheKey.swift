import Ground

/// The result of normalising a URL into a cache key.
package enum CacheKeyResult: Hashable, Sendable {
    /// The scratch array holds the key and nothing else.
    case normalised
    /// The URL cannot be fetched; the content of the scratch array is undefined.
    case refused(URLRefusal)
}

/// The cache key of an image: its URL in canonical spelling (RFC 3986 §6.2.2, §6.2.3).
///
/// Scheme and host are in lower case, the host without a trailing dot (it names the same host), an
/// IP address in its one strict form. The default port and the fragment are removed. The path is at
/// least `/` and has no dot segments. Unreserved characters are not escaped; illegal ones are, in
/// upper-case hexadecimal. The query keeps order and case, even if it is empty. Control bytes and
/// user info are rejected.
package enum CacheKey {
    /// The default maximum length of a key in bytes.
    package static let bytesMaxDefault = 8192

    /// Returns true if and only if ``normalise(percentEncoded:at:into:bytesMax:)`` would return
    /// exactly these bytes.
    ///
    /// The bytes in the buffer are then the key, and nothing needs to be copied.
    package static func isCanonical(
        _ bytes: Span<UInt8>, at range: Range<Int>, bytesMax: Int = bytesMaxDefault
    ) -> Bool {
        CanonicalForm.isCanonical(bytes, at: range, escapes: .decoded, lengthMax: bytesMax)
    }

    /// Returns true if the bytes are a key: normalising them as a URL changes nothing.
    package static func isKey(_ key: [UInt8], bytesMax: Int = bytesMaxDefault) -> Bool {
        CanonicalForm.isCanonical(key.span, at: key.indices, escapes: .kept, lengthMax: bytesMax)
    }

    /// Normalises the URL in the percent-encoded value of a query parameter.
    ///
    /// The value is decoded once (`%XX`; a `+` stays a `+`) and then normalised. Nothing is
    /// allocated once `scratch` has grown to the longest URL seen.
    ///
    /// - Parameters:
    ///   - value: the bytes that hold the value.
    ///   - range: the range of the value.
    ///   - scratch: receives the key; its previous content is discarded.
    ///   - bytesMax: the maximum length of the key in bytes.
    /// - Returns: `.normalised` if `scratch` holds the key, or `.refused` with the reason.
    package static func normalise(
        percentEncoded value: Span<UInt8>, at range: Range<Int>, into scratch: inout [UInt8],
        bytesMax: Int = bytesMaxDefault
    ) -> CacheKeyResult {
        scratch.removeAll(keepingCapacity: true)
        if let offset = decode(value, at: range, into: &scratch) {
            return .refused(.valueEscape(offset: offset))
        }
        return finish(&scratch, bytesMax: bytesMax)
    }

    /// Normalises a URL that is not encoded, as in a purge or a redirect.
    ///
    /// - Parameters:
    ///   - url: the bytes that hold the URL.
    ///   - range: the range of the URL.
    ///   - scratch: receives the key; its previous content is discarded.
    ///   - bytesMax: the maximum length of the key in bytes.
    /// - Returns: `.normalised` if `scratch` holds the key, or `.refused` with the reason.
    package static func normalise(
        url: Span<UInt8>, at range: Range<Int>, into scratch: inout [UInt8],
        bytesMax: Int = bytesMaxDefault
    ) -> CacheKeyResult {
        scratch.removeAll(keepingCapacity: true)
        scratch.append(addingCapacity: range.count) { output in
            for index in range { output.append(url[index]) }
        }
        return finish(&scratch, bytesMax: bytesMax)
    }

    /// Appends the decoded bytes; returns the offset in `range` of the first `%` without two
    /// hexadecimal digits, or `nil`.
    private static func decode(
        _ value: Span<UInt8>, at range: Range<Int>, into scratch: inout [UInt8]
    ) -> Int? {
        var bad: Int?
        let value = value.extracting(range)
        scratch.append(addingCapacity: value.count) { output in
            var index = 0
            while index < value.count {
                let byte = value[index]
                if byte != UInt8(ascii: "%") {
                    output.append(byte)
                    index &+= 1
                    continue
                }
                guard index + 2 < value.count, let high = ASCII.hexValue(value[index + 1]),
                    let low = ASCII.hexValue(value[index + 2])
                else {
                    bad = index
                    return
                }
                output.append(high << 4 | low)
                index &+= 3
            }
        }
        return bad
    }

    /// Replaces the URL in `scratch` with its canonical form; if that is refused, the content is
    /// undefined.
    private static func finish(_ scratch: inout [UInt8], bytesMax: Int) -> CacheKeyResult {
        let count = scratch.count
        if CanonicalForm.isCanonical(
            scratch.span, at: 0..<count, escapes: .kept, lengthMax: bytesMax)
        {
            return .normalised
        }
        do throws(URLRefusal) {
            try URLNormaliser.append(to: &scratch, bytesMax: bytesMax)
        } catch {
            return .refused(error)
        }
        scratch.removeSubrange(0..<count)
        return .normalised
    }
}
