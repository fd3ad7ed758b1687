import Admin
import Testing

@Suite("Sitemaps")
struct SitemapTests {
    private func read(_ text: String, imagesMax: Int = 100) throws(Sitemap.FormatError) -> Sitemap {
        try Sitemap(Array(text.utf8), imagesMax: imagesMax)
    }

    @Test("Images of pages and pages that are images are taken; other pages are not")
    func images() throws {
        let sitemap = try read(
            """
            \u{FEFF}<?xml version="1.0" encoding="UTF-8"?>
            <!-- <url><loc>http://a.example/comment.png</loc></url> -->
            <urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="urn:i">
              <url>
                <loc>http://a.example/page.html</loc>
                <image:image><image:loc> http://a.example/1.jpg
                </image:loc><image:title>One &lt;&amp;</image:title></image:image>
                <image:image>
                  <image:loc>http://a.example/2?a=1&amp;b=%20&#x26;c</image:loc>
                </image:image>
              </url>
              <url><loc><![CDATA[http://a.example/3.WebP?x=<1>&y]]></loc><lastmod/></url>
              <url><loc>http://a.example/1.jpg</loc></url>
            </urlset>
            """)
        #expect(
            sitemap.images == [
                "http://a.example/1.jpg", "http://a.example/2?a=1&b=%20&c",
                "http://a.example/3.WebP?x=<1>&y",
            ])
        #expect(sitemap.sitemaps.isEmpty && !sitemap.isTruncated)
    }

    @Test("An index names sitemaps, up to a limit, and no images")
    func index() throws {
        let entries = (0..<Sitemap.sitemapsMax + 5).map {
            "<sitemap><loc>http://a.example/\($0).png</loc></sitemap>"
        }
        let sitemap = try read("<sitemapindex>\(entries.joined())</sitemapindex>")
        #expect(sitemap.images.isEmpty && sitemap.isTruncated)
        #expect(sitemap.sitemaps.count == Sitemap.sitemapsMax)
        #expect(sitemap.sitemaps.first == "http://a.example/0.png")
    }

    @Test("A list of URLs, one a line, is a sitemap, and all of them are taken")
    func lines() throws {
        let sitemap = try read("http://a.example/1\r\n\n  https://a.example/2.png \r\n")
        #expect(sitemap.images == ["http://a.example/1", "https://a.example/2.png"])
    }

    @Test("Images beyond the limit are dropped, and that is reported")
    func limit() throws {
        let list = (0..<10).map { "http://a.example/\($0)" }.joined(separator: "\n")
        #expect(try read(list, imagesMax: 10).isTruncated == false)
        let cut = try read(list, imagesMax: 9)
        #expect(cut.isTruncated && cut.images.count == 9)
    }

    @Test(
        "Other content is refused with a reason",
        arguments: [
            ("", Sitemap.FormatError.notSitemap), ("<html><body/></html>", .notSitemap),
            ("{\"urls\":[]}", .notSitemap), ("/1.png", .notSitemap),
            ("<urlset><url><loc>http://a.example/1.png</loc>", .truncated),
            ("<urlset><!-- ", .truncated), ("<urlset><url", .truncated), ("<!--->", .truncated),
            (String(repeating: "<urlset>", count: 17), .notSitemap),
        ])
    func faults(text: String, fault: Sitemap.FormatError) {
        #expect(throws: fault) { try read(text) }
    }

    @Test("A gzip file is refused without guessing")
    func compressed() {
        #expect(throws: Sitemap.FormatError.compressed) {
            try Sitemap([0x1F, 0x8B, 0x08, 0x00], imagesMax: 1)
        }
    }

    @Test("Malformed references stay as they are, and entities are not expanded")
    func references() throws {
        let sitemap = try read(
            """
            <!DOCTYPE urlset [ <!ENTITY e "x"> ]>
            <urlset><image:image><loc>http://a.example/&e;&#xD800;&amp;&</loc></image:image>
            </urlset>
            """)
        #expect(sitemap.images == ["http://a.example/&e;&#xD800;&&"])
    }

    @Test("Invalid and oversized URLs are skipped and counted")
    func refused() throws {
        let long = "http://a.example/" + String(repeating: "b", count: 8_192)
        let names = ["/1.png", "http://a&#13;&#10;Cookie: b/1.png", long, "http://a.example/1.png"]
        let pages = names.map { "<image:image><image:loc>\($0)</image:loc></image:image>" }
        let sitemap = try read("<urlset><url>\(pages.joined())</url></urlset>")
        #expect(sitemap.images == ["http://a.example/1.png"] && sitemap.rejectedCount == 3)
        let index = names.map { "<sitemap><loc>\($0)</loc></sitemap>" }
        let other = try read("<sitemapindex>\(index.joined())</sitemapindex>")
        #expect(other.sitemaps == ["http://a.example/1.png"] && other.rejectedCount == 3)
        #expect(try read(long + "\nhttp://a.example/2").images == ["http://a.example/2"])
    }

    @Test("No truncated text is read beyond its end")
    func prefixes() {
        let text = Array(
            "<urlset><url><a:b c='d'/><!-- --><loc><![CDATA[http://f/g]]>&amp;</loc></url></urlset>"
                .utf8)
        for end in text.indices {
            #expect(throws: Sitemap.FormatError.self) {
                try Sitemap(Array(text[..<end]), imagesMax: 9)
            }
        }
    }
}
