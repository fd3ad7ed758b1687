import Ground

/// Whether a body begins as its declared type does, by the magic bytes of each format.
///
/// JPEG, PNG, GIF, BMP, WebP, icons and cursors are as in the MIME Sniffing Standard, §6.1; TIFF as
/// in TIFF 6.0 §2 (42 after the byte order) and BigTIFF (43); JPEG XL as in ISO/IEC 18181-2 (a bare
/// codestream, or the signature box of a container). AVIF (AV1 Image File Format §8) and HEIF
/// (ISO/IEC 23008-12, with the brands of its four registrations at IANA) are files of the ISO base
/// media file format, which begin with the box `ftyp` and their brands (ISO/IEC 14496-12 §4.3).
package enum ImageSignature {
    /// Bytes from the body's beginning that are looked at: room for twelve compatible brands, of
    /// which real files have four or five.
    package static let bytesCount = 64

    /// True if the Content-Type of `head` is of a format that always begins in one way, and the
    /// body begins in another: then it is not what it claims.
    ///
    /// Formats without such a beginning (SVG), and those not known here, contradict nothing. A
    /// coded body is not looked into. `first` holds the first ``bytesCount`` bytes, or all there
    /// are.
    package static func contradicts(_ head: AnswerHead, first: [UInt8]) -> Bool {
        guard head.first(.contentEncoding) == nil, let type = head.first(.contentType) else {
            return false
        }
        let bytes = head.bytes.span
        let essence = ContentTypes.essence(bytes, at: type.range)
        for format in formats
        where format.types.contains(where: { bytes.holdsIgnoringCase($0, at: essence) }) {
            return !format.beginnings.contains { begins(first, with: $0) }
        }
        return false
    }

    private struct Format {
        let types: [String]
        /// Any of them will do.
        let beginnings: [Beginning]
    }

    private enum Beginning {
        /// Nil stands for any byte.
        case bytes([UInt8?])
        /// The box `ftyp` with any of these, as its major brand or a compatible one.
        case brands([String])
    }

    private static let formats = [
        Format(types: ["image/jpeg", "image/jpg"], beginnings: [.bytes([0xFF, 0xD8, 0xFF])]),
        Format(
            types: ["image/png"],
            beginnings: [.bytes([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])]),
        Format(types: ["image/gif"], beginnings: [.bytes([0x47, 0x49, 0x46, 0x38])]),
        Format(
            types: ["image/webp"],
            beginnings: [
                .bytes([0x52, 0x49, 0x46, 0x46, nil, nil, nil, nil, 0x57, 0x45, 0x42, 0x50])
            ]),
        Format(types: ["image/avif"], beginnings: [.brands(["avif", "avis"])]),
        Format(types: ["image/bmp"], beginnings: [.bytes([0x42, 0x4D])]),
        Format(
            types: ["image/x-icon", "image/vnd.microsoft.icon"],
            beginnings: [.bytes([0, 0, 1, 0]), .bytes([0, 0, 2, 0])]),
        Format(
            types: ["image/jxl"],
            beginnings: [
                .bytes([0xFF, 0x0A]),
                .bytes([0, 0, 0, 0x0C, 0x4A, 0x58, 0x4C, 0x20, 0x0D, 0x0A, 0x87, 0x0A]),
            ]),
        Format(
            types: ["image/tiff"],
            beginnings: [
                .bytes([0x49, 0x49, 0x2A, 0]), .bytes([0x4D, 0x4D, 0, 0x2A]),
                .bytes([0x49, 0x49, 0x2B, 0]), .bytes([0x4D, 0x4D, 0, 0x2B]),
            ]),
        // Servers mix the four up, so any of the family's brands will do.
        Format(
            types: ["image/heic", "image/heif", "image/heic-sequence", "image/heif-sequence"],
            beginnings: [
                .brands([
                    "heic", "heix", "heim", "heis", "hevc", "hevx", "hevm", "hevs", "mif1", "msf1",
                ])
            ]),
    ]

    private static func begins(_ first: [UInt8], with beginning: Beginning) -> Bool {
        switch beginning {
        case .bytes(let signature):
            first.count >= signature.count
                && zip(first, signature).allSatisfy { byte, wanted in
                    wanted == nil || byte == wanted
                }
        case .brands(let brands): mayHold(first, brands)
        }
    }

    /// True if the file begins with `ftyp` and names one of `brands`, or may name one where it is
    /// not looked at.
    ///
    /// The box is its size, `ftyp`, the major brand, a version, and compatible brands to its end;
    /// 0 and 1 for a size mean that the end is told elsewhere.
    private static func mayHold(_ first: [UInt8], _ brands: [String]) -> Bool {
        guard first.count >= 12, first[4..<8].elementsEqual("ftyp".utf8) else { return false }
        let size = first[..<4].reduce(0) { $0 << 8 | Int($1) }
        if size < 2 || size > first.count { return true }
        let starts = [8] + Array(stride(from: 16, through: size - 4, by: 4))
        return size >= 12
            && starts.contains { start in
                brands.contains { first[start..<start + 4].elementsEqual($0.utf8) }
            }
    }
}
