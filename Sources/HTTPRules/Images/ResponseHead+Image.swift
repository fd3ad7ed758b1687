import Ground

extension ResponseHead {
    /// The head that clients of the image API receive: the fields that an image needs, and those
    /// that protect browsers.
    ///
    /// Of a field that is not a list the first line counts; hop-by-hop fields are left out (RFC
    /// 9110 §7.6.1). A 304 has the protective fields too: it updates what browsers stored, which
    /// may come from elsewhere (RFC 9111 §3.2). The origin's own protective fields are not
    /// forwarded.
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
            // The response is saved instead of shown as a page of this host, under the origin's
            // file name (RFC 6266).
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

    /// The policy for an SVG opened by itself, which is a document and may hold scripts.
    private static let sandbox = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

    /// The risk of a response that a browser opens by itself.
    private enum BrowserRisk {
        /// The browser only shows pixels.
        case none
        /// The browser shows an image in an unknown format or one that may hold scripts.
        case image
        /// The browser may run the content of a type that the operator added.
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
