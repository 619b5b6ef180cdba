# can: compose and ease frames by its modules, save with Pillow, and validate the GIF
# cannot: GIFBuilder: imageio, unless the operator adds it
import sys
sys.path.insert(0, "/mnt/skills/slack-gif-creator")
import numpy
from core.easing import interpolate
from core.frame_composer import create_blank_frame, draw_circle
from core.validators import validate_gif
frames = []
for i in range(10):
    frame = create_blank_frame(128, 128, (240, 248, 255))
    draw_circle(frame, (64, int(interpolate(20, 100, i / 9, "bounce_out"))), 12, fill_color=(200, 30, 30))
    frames.append(frame)
frames[0].save("ball.gif", save_all=True, append_images=frames[1:], duration=66, loop=0)
passes, info = validate_gif("ball.gif", is_emoji=True)
assert passes, info
