def add_numbers(num1, num2):
    """
    将两个数字相加

    Args:
        num1: 第一个数字 (int)
        num2: 第二个数字 (int)

    Returns:
        int: 两数之和
    """
    return num1 + num2
