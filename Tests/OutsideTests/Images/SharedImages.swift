/// Properties of the images of the shared folder, by file name.
enum SharedImages {
    /// Width and height of the complete images, before any rotation, as read by gdk-pixbuf 2.42,
    /// libwebp 1.2 and libheif 1.15, and for one icon by file(1).
    static let sizes: [String: (width: Int, height: Int)] = [
        "Tests_images_apng_fctl_actl.png": (128, 64),
        "Tests_images_avif_hopper.avif": (128, 128),
        "Tests_images_avif_icc_profile_none.avif": (57, 57),
        "Tests_images_avif_rot0mir0.avif": (640, 427),
        "Tests_images_avif_rot1mir0.avif": (427, 640),
        "Tests_images_avif_rot2mir0.avif": (640, 427),
        "Tests_images_avif_rot3mir0.avif": (427, 640),
        "Tests_images_avif_transparency.avif": (64, 64),
        "Tests_images_avif_xmp_tags_orientation.avif": (326, 268),
        "Tests_images_background_outside_palette.gif": (1, 1),
        "Tests_images_black_and_white.ico": (16, 16),
        "Tests_images_bmp_b_badfilesize.bmp": (127, 64),
        "Tests_images_bmp_q_pal8os2v2.bmp": (127, 64),
        "Tests_images_bmp_q_rgba32h56.bmp": (127, 64),
        "Tests_images_comment_after_last_frame.gif": (1, 1),
        "Tests_images_decompression_bomb_extents.gif": (100, 100),
        "Tests_images_different_transparency.gif": (100, 100),
        "Tests_images_dispose_none.gif": (100, 100),
        "Tests_images_exif-72dpi-int.jpg": (500, 450),
        "Tests_images_exif-dpi-zerodivision.jpg": (200, 200),
        "Tests_images_hopper.gif": (128, 128),
        "Tests_images_hopper.ico": (16, 16),
        "Tests_images_hopper_16bit_qtables.jpg": (128, 128),
        "Tests_images_hopper_256x256.ico": (256, 256),
        "Tests_images_hopper_mask.ico": (16, 16),
        "Tests_images_hopper_orientation_7.jpg": (128, 128),
        "Tests_images_icc-after-SOF.jpg": (10, 10),
        "Tests_images_imagedraw_arc_no_loops.png": (100, 100),
        "Tests_images_imagedraw_rounded_rectangle_corners_yyyn.png": (200, 200),
        "Tests_images_iss634.gif": (245, 245),
        "Tests_images_missing_background.gif": (32, 32),
        "Tests_images_no_palette.gif": (1, 1),
        "Tests_images_old-style-jpeg-compression.png": (4160, 870),
        "Tests_images_test_combine_double_breve_below_ma.png": (400, 400),
        "Tests_images_tga_common_1x1_l.png": (1, 1),
        "Tests_images_variation_adobe_older_harfbuzz_name.png": (100, 75),
        "Tests_images_xmp_test.jpg": (2000, 1072),
        "alpha_filter_1_method_0.webp": (128, 128),
        "alpha_filter_3.webp": (16, 16),
        "color_cache_bits_11.webp": (128, 128),
        "contrib_pngsuite_ftbbn0g02.png": (32, 32),
        "lossless4.webp": (256, 256),
        "lossless_color_transform.bmp": (512, 512),
        "lossless_vec_2_8.webp": (128, 128),
        "lossy_alpha3.webp": (1000, 307),
        "one_color_no_palette.webp": (100, 100),
        "test_test-suite_images_avif-orientation-6.avif": (3024, 4032),
        "test_test-suite_images_cd1.2.jpg": (531, 373),
        "test_test-suite_images_rotation_7.jpg": (308, 231),
        "tests_images_bmp_images_Info_1_Bit.bmp": (6, 6),
        "tests_images_bmp_images_Info_R8_G8_B8_Top_Down.bmp": (6, 6),
        "tests_images_bmp_images_V5_A8_R8_G8_B8_Rgb.bmp": (32, 32),
        "tests_images_bmp_images_pal8os2sp.bmp": (127, 64),
        "tests_images_bmp_images_rgb24.bmp": (127, 64),
        "tests_images_ico_images_bmp-24bpp-mask.ico": (32, 32),
        "tests_images_ico_images_multiple_entries_with_different_bit_depth.ico": (48, 48),
        "tests_images_ico_images_png-32bpp-alpha.ico": (32, 32),
        "tests_images_ico_images_smile.ico": (32, 32),
        "tests_images_ico_images_two-entry-order-test.ico": (48, 48),
        "tests_images_jpg_portrait_2.jpg": (113, 150),
        "tests_reference_bmp_images_pal8v4.bmp.png": (127, 64),
        "vp80-00-comprehensive-013.webp": (176, 144),
    ]

    /// The treatment of an image that the origin has delivered completely.
    enum Fate {
        /// Served and stored: it matches its type, and no more of it is examined.
        case kept
        /// Refused with 502.
        case refused
    }

    /// The treatment of each broken image, and the reason.
    static let fates: [String: (Fate, String)] = [
        "test_test-suite_images_17000x17000.avif": (.refused, "289,000,000 pixels in its ispe"),
        "Tests_images_l2rgb_read.bmp": (.kept, "3,158,064 x 48 pixels are few enough; it is cut"),
        "Tests_images_bmp_b_badwidth.bmp": (.kept, "its width is negative"),
        "Tests_images_bmp_q_rgb16-231.bmp": (.kept, "its header is whole; its masks are odd"),
        "tests_images_bmp_images_rgba32-61754.bmp": (
            .kept, "its header is whole; so are its masks"
        ),
        "tests_regression_gif_zero-loop-count.gif": (.kept, "it has a screen but no frame"),
        "Tests_images_decompression_bomb.gif": (
            .refused, "its frame makes of 32 x 32 a screen of 65,535 x 66,601"
        ),
        "Tests_images_zero_width.gif": (.kept, "its frame is 0 wide"),
        "test_test-suite_images_truncated.gif": (.kept, "575 x 800; the origin has it cut"),
        "tests_regression_jpg_oss-fuzz-36829.jpeg": (
            .kept, "3 x 62,728, behind bytes between the markers; the scan is damaged"
        ),
        "Tests_images_truncated_jpeg.jpg": (.kept, "100 x 100; the origin has it cut"),
        "test_test-suite_images_truncated.jpg": (.kept, "290 x 442; the origin has it cut"),
        "Tests_images_ultrahdr.jpg": (.kept, "1,512 x 2,688; the origin has it cut"),
        "contrib_testpngs_crashers_huge_bKGD_chunk.png": (.kept, "1 x 1; a later chunk lies"),
        "contrib_testpngs_crashers_huge_pCAL_chunk.png": (.kept, "1 x 1; a later chunk lies"),
        "Tests_images_apng_syntax_num_frames_zero.png": (.kept, "128 x 64; it has no frame"),
        "Tests_images_truncated_image.png": (.kept, "640 x 480; the origin has it cut"),
        "test_test-suite_images_blankpage.svg": (.kept, "an SVG; what is in it is not read"),
        "test_test-suite_images_logo.svg": (.kept, "an SVG; what is in it is not read"),
        "Tests_images_decompression_bomb.ico": (
            .refused, "the bitmap in it has 65,535 x 32,768 pixels, its directory says 16 x 16"
        ),
        "tests_regression_ico_crash-981fee302fe0fc543ee48292cc3d6ace7e97e633.ico": (
            .kept, "32 x 32; what follows the header is damaged"
        ),
        "tests_regression_ico_oom-ff076e7064c13ec1f8e2c5bbbfb7a77a08db2361.ico": (
            .refused, "the PNG in it has 788,529,184 x 32 pixels, its directory says 32 x 32"
        ),
        "tests_regression_ico_oom-0d0085eb7f66ea55d9119206235cd29e089b9140.ico": (
            .refused, "the PNG in it has 469,762,080 x 32 pixels, its directory says 32 x 32"
        ),
    ]

    /// The broken images whose truncation is detected at the end of a connection without a length.
    static let cut: Set = [
        "Tests_images_l2rgb_read.bmp", "Tests_images_truncated_jpeg.jpg",
        "test_test-suite_images_truncated.jpg", "Tests_images_ultrahdr.jpg",
        "tests_regression_jpg_oss-fuzz-36829.jpeg", "test_test-suite_images_truncated.gif",
        "Tests_images_truncated_image.png", "Tests_images_zero_width.gif",
        "tests_regression_gif_zero-loop-count.gif",
    ]
}
