import Ground

extension ResponseHead {
    /// The answer as clients are given it who asked for an image: of its fields those that an image
    /// needs, and what guards browsers.
    ///
    /// Of a field that is no list the first line counts; what is of one hop is left out (RFC 9110
    /// §7.6.1). What guards browsers is in a 304 too: it updates what they hold, which may have
    /// come from somewhere else (RFC 9111 §3.2). Of the origin no such field is passed on.
    package var imageResponse: ResponseHead {
        let source = bytes.span
        let hop = HopByHop(lines, in: source)
        let passed = lines.filter { !hop.contains($0, in: source) }
        let danger = BrowserRisk(self)
        var image = ResponseHead(status: 200, bytes: Array("HTTP/1.1 200 OK\r\n".utf8), lines: [])
        func add(_ name: FieldName, isList: Bool) {
            let found = passed.filter { $0.id == name }
            for line in isList ? found[...] : found.prefix(1) {
                image.appendField(name, name.text.description, source.copy(line.value.range))
            }
        }
        add(.contentType, isList: false)
        add(.contentEncoding, isList: true)
        add(.contentLanguage, isList: true)
        if danger == .document {
            // It is not shown as a page of this host, but saved, under the name that the origin
            // gives it (RFC 6266).
            let named = passed.first { $0.id == .contentDisposition }.map { line in
                let end = FieldSyntax.find(UInt8(ascii: ";"), in: source, at: line.value.range)
                return source.copy(end..<line.value.end)
            }
            image.appendField(
                .contentDisposition, "content-disposition", Array("attachment".utf8) + (named ?? [])
            )
        } else {
            add(.contentDisposition, isList: false)
        }
        image.appendField(.acceptRanges, "accept-ranges", Array("bytes".utf8))
        image.appendField(.other, "x-content-type-options", Array("nosniff".utf8))
        if danger != .none {
            image.appendField(.other, "content-security-policy", Array(Self.sandbox.utf8))
        }
        add(.etag, isList: false)
        add(.lastModified, isList: false)
        add(.cacheControl, isList: true)
        add(.expires, isList: false)
        add(.vary, isList: true)
        return image
    }

    /// An SVG opened by itself is a document, and may hold scripts.
    private static let sandbox = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

    /// What a browser might do with an answer that is opened by itself.
    private enum BrowserRisk {
        /// Show pixels.
        case none
        /// Show an image of a format that may hold scripts, or of one that is not known.
        case image
        /// Run whatever the operator's type makes of it.
        case document

        init(_ head: ResponseHead) {
            let bytes = head.bytes.span
            let type = head.first(.contentType) ?? .empty
            let essence = ImageMediaTypes.essence(bytes, at: type.range)
            if ImageFormat(bytes, type: essence)?.isRaster == true {
                self = .none
            } else {
                self = ImageMediaTypes.isImage(bytes, at: essence) ? .image : .document
            }
        }
    }
}
