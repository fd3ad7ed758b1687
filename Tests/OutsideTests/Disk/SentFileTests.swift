import Harness
import Testing

extension Outside {
    @Suite("Responses outside memory are sent from the disk's files to the client")
    struct SentFileTests {
        private let images = [
            TestImage.generated(.bmp, byteCount: 250_000, seed: 330),
            TestImage.generated(.png, byteCount: 12_000, seed: 331),
            TestImage.generated(.bmp, byteCount: 90_000, seed: 332),
        ]

        /// Starts a node whose memory holds one image, with all images on disk.
        private func stage(memory: String = "512MiB") throws -> (DiskStage, paths: [String]) {
            let stage = try DiskStage(
                "--loops", "1", "--memory-entries", "1", "--memory-limit", memory)
            let paths = images.map { stage.origin.serve($0, fields: [lasting]) }
            for (image, path) in zip(images, paths) { #expect(try stage.get(path).matches(image)) }
            try stage.settle()
            return (stage, paths)
        }

        @Test("Complete responses, ranges and HEAD are identical, repeatedly")
        func alike() throws {
            let (stage, paths) = try stage()
            for _ in 0..<5 {
                for (image, path) in zip(images, paths) {
                    let response = try stage.get(path, expecting: image)
                    #expect(response.matches(image) && response.detail == "disk", "\(response)")
                    let target = ImageRequestTarget.forURL(stage.origin.url(path))
                    let part = try stage.node.get(target, fields: ["Range: bytes=5000-6999"])
                    #expect(part.status == 206 && part.body == image.bytes(5_000..<7_000))
                    #expect(try stage.node.get(target, method: "HEAD").bodyByteCount == 0)
                }
            }
            #expect(paths.allSatisfy { stage.fetches($0) == 1 })
        }

        @Test("A slow client gets all pipelined responses")
        func slow() throws {
            let (stage, paths) = try stage()
            for path in paths { _ = try stage.get(path) }
            let connection = try stage.node.connect(receiveBufferBytes: 4_096)
            let requests = paths.map {
                HTTPConnection.request(ImageRequestTarget.forURL(stage.origin.url($0)))
            }
            for _ in 0..<20 { for request in requests { try connection.socket.send(request) } }
            #expect(connection.socket.waitForInput(seconds: 20))
            for number in 0..<20 {
                for image in images {
                    let response = connection.readResponse(expecting: image, seconds: 20)
                    #expect(response.matches(image), "\(number): \(response)")
                    guard response.isWhole else { return }
                }
            }
        }

        @Test("Data waiting for slow clients is in memory once, not once per client")
        func shared() throws {
            let (stage, paths) = try stage(memory: "16MiB")
            for path in paths { _ = try stage.get(path) }
            let clients = try (0..<40).map { _ in
                let connection = try stage.node.connect(receiveBufferBytes: 4_096)
                let request = HTTPConnection.request(
                    ImageRequestTarget.forURL(stage.origin.url(paths[0])))
                for _ in 0..<12 { try connection.socket.send(request) }
                #expect(connection.socket.waitForInput(seconds: 20))
                return connection
            }
            let used = try #require(stage.node.metric("nuthatch_memory_used_bytes"))
            #expect(used < 4 * Double(images[0].byteCount), "\(clients.count) clients")
            for client in clients {
                #expect(client.readResponse(expecting: images[0], seconds: 20).matches(images[0]))
            }
        }

        @Test("A purge takes effect from the next request on")
        func purged() throws {
            let (stage, paths) = try stage()
            for path in paths + paths { _ = try stage.get(path) }
            #expect(try stage.get(paths[0]).detail == "disk")
            _ = try stage.node.purge("{\"url\":\"\(stage.origin.url(paths[0]))\"}")
            #expect(try stage.get(paths[0], expecting: images[0]).detail == "origin")
        }
    }
}
